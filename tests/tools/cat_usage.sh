#!/usr/bin/env bash
# The command line of reeve-cat: exit codes, one line for an error, help and version on standard output.
. "${srcdir:-.}/tests/tools/common.sh"

# misuse WHAT ARGUMENT...: exit code 2 and a hint.
misuse()
{
	local what=$1 rc
	shift
	"$cat_" "$@" </dev/null >"$tmp/out" 2>"$tmp/cat.err"
	rc=$?
	[ $rc = 2 ] || fail "$*: exit code $rc, not 2"
	grep -qe "$what" "$tmp/cat.err" && grep -q -- --help "$tmp/cat.err" || fail "$*: no $what"
	[ ! -s "$tmp/out" ] || fail "$*: something on standard output"
}

out=$("$cat_" --help 2>"$tmp/cat.err") || fail "--help: exit code $?"
for word in --listen --progress --timeout --reset-code --mux --plaintext --noise --key --peer 'protects nothing' --version 'Exit code'; do
	grep -qe "$word" <<<"$out" || fail "--help does not name $word"
done
[ "$(awk 'length > 80' <<<"$out")" = "" ] || fail "--help is wider than 80 columns"
[[ $("$cat_" --version) =~ ^reeve-cat\ [0-9]+\.[0-9]+\.[0-9]+$ ]] || fail "--version"

misuse 'address is missing'
misuse 'one address' tcp://127.0.0.1:1 tcp://127.0.0.1:2
misuse 'unknown option' --bogus tcp://127.0.0.1:1
misuse 'unknown option' --timeout
for value in x -1 0 '' 1s nan; do
	misuse --timeout "--timeout=$value" tcp://127.0.0.1:1
done
for value in x -1 4294967296 '' 7x; do
	misuse --reset-code "--reset-code=$value" tcp://127.0.0.1:1
done
for value in quic '' yamux, yamux,mplex,yamux,mplex,yamux; do
	misuse --mux "--mux=$value" tcp://127.0.0.1:1
done
misuse --plaintext --mux=yamux,mplex tcp://127.0.0.1:1
misuse --noise --noise --plaintext tcp://127.0.0.1:1
misuse --noise --key=x tcp://127.0.0.1:1
misuse --noise --peer=x tcp://127.0.0.1:1
misuse --progress --progress=often tcp://127.0.0.1:1

expect 1 '^reeve-cat: tcp://127.0.0.1:1: Connection refused \(REEVE_ESYS:ECONNREFUSED\)$' "$cat_" tcp://127.0.0.1:1
expect 1 "^reeve-cat: unix://$tmp/none: No such file .*ENOENT" "$cat_" "unix://$tmp/none"
expect 1 '^reeve-cat: nonsense: bad argument \(REEVE_EINVAL\)$' "$cat_" nonsense
expect 1 '^reeve-cat: nonsense: bad argument \(REEVE_EINVAL\)$' "$cat_" -l nonsense

# What was not agreed is named.
start 2 "$cat_" --listen --timeout 5 --plaintext --mux yamux "unix://$tmp/sock" </dev/null
expect 1 '^reeve-cat: .*\(REEVE-UP-MUXER\)$' "$cat_" --plaintext --mux mplex "unix://$tmp/sock"
# Identities: made once, known by their id.
if "$cat_" --noise nonsense 2>&1 | grep -q EINVAL; then # else built without
	start 2 "$cat_" --listen --timeout 5 --noise --key "$tmp/key" "unix://$tmp/noise" </dev/null
	read -r -t "$limit" word id <&9
	[ "$word ${id%% *}" = "we are" ] || fail "--key: said $word $id"
	[ "$(stat -c '%a %s' "$tmp/key")" = "600 68" ] || fail "--key: $(stat -c '%a %s' "$tmp/key")"
	"$cat_" --noise --peer "${id#* }" "unix://$tmp/noise" </dev/null >"$tmp/none" 2>"$tmp/cat.err" || fail "--peer"
	ended "--noise" 0
	start 2 "$cat_" --listen --timeout 5 --noise --key "$tmp/key" "unix://$tmp/noise" </dev/null
	read -r -t "$limit" word again <&9
	[ "$again" = "$id" ] || fail "--key: $again, before $id"
	expect 1 '^reeve-cat: .*\(REEVE-UP-IDENTITY\)$' "$cat_" --noise \
		--peer 12D3KooWBtg3aaRMjxwedh83aGiUkwSxDwUZkzuJcfaqUmo7R3pq "unix://$tmp/noise"
fi
echo "cat_usage: ok"
