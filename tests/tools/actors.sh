#!/usr/bin/env bash
# The example with an actor: every line of every thread comes back, with both protocols.
. "${srcdir:-.}/tests/tools/common.sh"

for mux in '' '--mux yamux' '--mux mplex'; do
	out=$(examples/actors $mux) || fail "$mux: exit code $?"
	[ "$out" = "300 lines, 2370 bytes out, 2370 bytes back" ] || fail "$mux: $out"
done
expect 2 '^usage' examples/actors --mux quic
echo "actors: ok"
