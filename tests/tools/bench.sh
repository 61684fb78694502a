#!/usr/bin/env bash
# reeve-bench in short: every transport and mode measures something, JSON is JSON, the table is plain and fits.
. "${srcdir:-.}/tests/tools/common.sh"
bench=tools/reeve-bench

# positive NAME: every number of this name in the JSON is more than nothing.
positive()
{
	grep -oE "\"$1\": [0-9.]+" "$tmp/json" | grep -qE '[1-9]' || fail "$1 is absent or nothing: $(cat "$tmp/json")"
}

# measured TRANSPORT MODE MUX OPTION...
measured()
{
	local transport=$1 mode=$2 mux=$3
	shift 3
	$bench --transport $transport $mode "$@" --streams 2 --size 4K --seconds 0.2 --workers 1 --json \
		>"$tmp/json" 2>"$tmp/bench.err" || fail "$transport $mode $*: exit code $?"
	[ ! -s "$tmp/bench.err" ] || fail "$transport $mode $*: said something"
	for name in bytes_per_s raw_bytes_per_s ratio writes_per_s frames_per_call cpu_s_per_gb message_ns; do
		positive $name
	done
	[ $mux = mplex ] || positive window
	grep -q "\"transport\": \"$transport\", \"mode\": \"${mode#--}\", \"mux\": \"$mux\"" "$tmp/json" ||
		fail "$transport $mode $*: not named"
	! command -v python3 >/dev/null || python3 -m json.tool "$tmp/json" >/dev/null || fail "$transport $mode $*: not JSON"
}

for transport in tcp unix memory; do
	for mode in --threads --callbacks; do
		measured $transport $mode yamux
		measured $transport $mode mplex --mux mplex
	done
done
measured tcp --threads yamux --plaintext
measured unix --threads mplex --plaintext --mux mplex,yamux
grep -q '"plaintext": true' "$tmp/json" || fail "--plaintext: not named"

if $bench --noise --seconds 0.1 >/dev/null 2>&1; then # else built without
	measured tcp --threads yamux --noise
	measured memory --callbacks mplex --noise --mux mplex
	grep -q '"noise": true' "$tmp/json" || fail "--noise: not named"
fi

$bench --seconds 0.8 >"$tmp/table" 2>"$tmp/bench.err" || fail "exit code $?"
[ ! -s "$tmp/bench.err" ] || fail "said something"
grep -q '^reeve-bench [0-9.]*: tcp, yamux, threads,' "$tmp/table" || fail "the table has no heading"
for row in '1 +64 KiB' '8 +64 KiB' '1 +1 KiB' '8 +1 KiB'; do
	[ "$(grep -cE "^ +$row +[0-9]" "$tmp/table")" = 1 ] || fail "no row $row: $(cat "$tmp/table")"
done
! grep -q "[^ -~]" "$tmp/table" || fail "the table is not plain text"
[ "$(awk 'length > 80' "$tmp/table")" = "" ] || fail "the table is wider than 80 columns"

for wrong in "--transport carrier" --streams=0 --streams=5000 --size=0 --size=17M --size=1G --seconds=0 --workers=x --mux=quic --mux= --mux=yamux,mplex --bogus word; do
	$bench $wrong >"$tmp/none" 2>"$tmp/usage"
	[ $? = 2 ] || fail "$wrong: not exit code 2"
	grep -q -- --help "$tmp/usage" || fail "$wrong: no hint"
done
out=$($bench --help) || fail "--help: exit code $?"
[ "$(awk 'length > 80' <<<"$out")" = "" ] || fail "--help is wider than 80 columns"
[[ $($bench --version) =~ ^reeve-bench\ [0-9]+\.[0-9]+\.[0-9]+$ ]] || fail "--version"
echo "bench: ok"
