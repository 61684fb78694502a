#!/usr/bin/env bash
# perf/compare: what got slower and faster, in which direction, and what is noise.
. "${srcdir:-.}/tests/tools/common.sh"
command -v python3 >/dev/null || exit 77
compare=${srcdir:-.}/perf/compare

# cell ROW CONTENDER WHAT UNIT VALUE Q1 Q3
cell()
{
	printf '{"bench":"b","row":"%s","contender":"%s","what":"%s","unit":"%s","x":0,"value":%s,"q1":%s,"q3":%s,"n":11,"question":"q"}\n' "$@"
}

# old CASE UNIT VALUE
old()
{
	printf '{"bench":"o","case":"%s","unit":"%s","value":%s,"n":11,"question":"q"}\n' "$@"
}

machine='{"bench":"machine","processor":"P","cflags":"-O2"}'
{
	echo "$machine"
	cell r ours rate GB/s 4 3.9 4.1        # up
	cell r ours p99 us 10 9.9 10.1         # up
	cell r ours/plain rate ratio 1 0.9 1.1 # down
	cell r ours/plain time ratio 1 0.9 1.1 # down
	cell r rust/ours time ratio 2 1.9 2.1  # down
	cell r ours cpu s/GB 1 0.5 1.5         # noise: ranges overlap
	cell r ours calls /MiB 100 100 100     # noise: 4 %
	cell r ours time us nan nan nan        # no number
	cell gone ours time us 1 1 1
	old case ns 100
	old 'noisy case' ns 100
	old 'what a word' bananas 100
	echo '{"bench":"b","row":'
} >"$tmp/a.jsonl"
mkdir "$tmp/b"
{
	echo "$machine"
	cell r ours rate GB/s 5 4.9 5.1
	cell r ours p99 us 20 19.9 20.1
	cell r ours/plain rate ratio 0.5 0.45 0.55
	cell r ours/plain time ratio 0.5 0.45 0.55
	cell r rust/ours time ratio 1 0.9 1.1
	cell r ours cpu s/GB 1.4 1.3 1.6
	cell r ours calls /MiB 104 104 104
	cell r ours time us 1 1 1
	cell fresh ours time us 1 1 1
	old case ns 50
	old 'noisy case' ns 120
	old 'what a word' bananas 200
} >"$tmp/b/results.jsonl"
cat >"$tmp/wanted" <<'END'
slower:
  q b r: ours p99                 10 -> 20         us  (+100 %)
  q b r: ours/plain rate  1 (0.9–1.1) -> 0.5 (0.45–0.55) ratio  (-50 %)
  q b r: rust/ours time   2 (1.9–2.1) -> 1 (0.9–1.1) ratio  (-50 %)

faster:
  q b r: ours rate                 4 -> 5          GB/s  (+25 %)
  q b r: ours/plain time  1 (0.9–1.1) -> 0.5 (0.45–0.55) ratio  (-50 %)
  q o case:                      100 -> 50         ns  (-50 %)

changed, for better or worse:
  q o what a word:         100 -> 200        bananas  (+100 %)

3 slower, 3 faster, 1 changed, 3 the same; 1 only in the first, 2 only in the second
END
export PYTHONUTF8=1
$compare "$tmp/a.jsonl" "$tmp/b" >"$tmp/got" 2>"$tmp/compare.err"
[ $? = 1 ] || fail "something is slower: not exit code 1"
[ ! -s "$tmp/compare.err" ] || fail "said something"
diff -u "$tmp/wanted" "$tmp/got" || fail "not what was wanted"

out=$($compare "$tmp/b" "$tmp/b") || fail "the same: exit code $?"
[ "$out" = "0 slower, 0 faster, 0 changed, 12 the same; 0 only in the first, 0 only in the second" ] || fail "the same: $out"
expect 2 'no figure in common' $compare "$tmp/a.jsonl" <(echo "$machine")
expect 2 'No such file' $compare "$tmp/a.jsonl" "$tmp/absent"
echo "perf_compare: ok"
