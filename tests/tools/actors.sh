#!/usr/bin/env bash
# The example with an actor: every line of every thread comes back.
. "${srcdir:-.}/tests/tools/common.sh"

out=$(examples/actors) || fail "exit code $?"
[ "$out" = "300 lines, 2370 bytes out, 2370 bytes back" ] || fail "$out"
echo "actors: ok"
