#!/usr/bin/env bash
# perf/run with programs that print what it is told, and perf/report on what it kept: a question that is missing, one that
# failed, figures that are no numbers, an interrupted run, and one question replaced.
. "${srcdir:-.}/tests/tools/common.sh"
command -v python3 >/dev/null || exit 77
perf=${srcdir:-.}/perf
export BUILD=$tmp/build MAKEFLAGS= PYTHONUTF8=1
mkdir -p "$BUILD/perf" "$tmp/bin"
# Nothing else in PATH: no plots, so that it is the same everywhere.
ln -s "$(python3 -c 'import sys; print(sys.executable)')" "$tmp/bin/python3"

# program NAME EXIT LINE...: one of the suite that prints this.
program()
{
	local name=$1 code=$2
	shift 2
	printf '%s\n' "$@" >"$tmp/$name.lines"
	printf '#!/bin/sh\necho "$0 $*" >>%s\ncat %s\nexit %s\n' "$tmp/ran" "$tmp/$name.lines" "$code" >"$BUILD/perf/$name"
	chmod +x "$BUILD/perf/$name"
}

# build CFLAGS: a build folder in which everything is made already.
build()
{
	printf 'CC = no-such-compiler\nCFLAGS = %s\nREEVE_SAN_CFLAGS = %s\nperf/%%: ;\n' "$1" "${2-}" >"$BUILD/Makefile"
}

# runs CODE OPTION...
runs()
{
	local code=$1 rc
	shift
	: >"$tmp/ran"
	$perf/run --out "$tmp/results" "$@" >"$tmp/run.out" 2>"$tmp/run.err"
	rc=$?
	[ $rc = "$code" ] || fail "perf/run $*: exit code $rc, not $code"
}

# has TEXT, lacks TEXT: in the results.
has()
{
	grep -qF -- "$1" "$tmp/results/results.jsonl" || fail "no $1 in $(cat "$tmp/results/results.jsonl")"
}

lacks()
{
	! grep -qF -- "$1" "$tmp/results/results.jsonl" || fail "$1 in $(cat "$tmp/results/results.jsonl")"
}

reports()
{
	PATH=$tmp/bin "$tmp/bin/python3" "$perf/report" "$@" >"$tmp/report.out" 2>"$tmp/report.err" || fail "perf/report: exit code $?"
}

# What it refuses.
build -O2 -fsanitize=thread
runs 2 --only memory
grep -q 'it has sanitizers' "$tmp/run.err" || fail "sanitizers: not said"
build '-O2 -g -O0'
runs 2 --only memory
grep -q 'not optimised' "$tmp/run.err" || fail "-O0: not said"
build -O2
echo '#define REEVE_DEBUG_CHECKS 1' >"$BUILD/config.h"
runs 2 --only memory
rm "$BUILD/config.h"
runs 2 --only nothing
[ ! -s "$tmp/ran" ] || fail "something was run"

# Two questions, with options for the programs; a figure that is no number.
program memory 0 '{"bench":"memory","row":"idle stream, a side","contender":"ours","what":"allocated","unit":"B","x":0,"value":250,"q1":250,"q3":250,"n":9}' \
	'{"bench":"memory","case":"odd","unit":"bytes","value":-nan,"n":9}'
program open 0 '{"bench":"opens","row":"streams tcp, 64 at once","contender":"operations","what":"time","unit":"us","x":1,"value":3,"q1":2,"q3":4,"n":3}'
runs 0 --only memory --only opens --rounds 7
diff - "$tmp/ran" <<END || fail "not what was to be run"
$BUILD/perf/open --rounds=7
$BUILD/perf/memory --rounds=7
END
head -n 1 "$tmp/results/results.jsonl" | grep -q '^{"bench":"machine",.*"cflags":"-O2"' || fail "the first line is not the machine"
has '"value":250,"q1":250,"q3":250,"n":9,"question":"memory"}'
has '"value":null'
has '"value":3,'

# One question replaced, with a program that fails after a line.
program open 3 '{"bench":"opens","row":"streams tcp, 64 at once","contender":"operations","what":"time","unit":"us","x":1,"value":5,"q1":4,"q3":6,"n":3}'
runs 1 --only opens
grep -q 'FAILED: opens open: exit code 3' "$tmp/run.err" || fail "the failure is not named"
has '"value":5,'
lacks '"value":3,'
has '"value":250,'

# Interrupted: what was complete is kept, an older answer too.
printf '#!/bin/sh\nkill -TERM $PPID\nexec tail -f /dev/null\n' >"$BUILD/perf/memory"
program open 0 '{"bench":"opens","row":"streams tcp, 64 at once","contender":"operations","what":"time","unit":"us","x":1,"value":1,"q1":1,"q3":1,"n":3}'
runs 130 --only opens --only memory
has '"value":1,'
lacks '"value":5,'
has '"value":250,'

# A program that prints something else.
program wan 0 '{"bench":"wan","case":"100 ms 1000 Mbit/s x 1 ours/raw","unit":"ratio","value":0.5,"n":9}' 'not a figure'
runs 1 --only wan --quick
has '"value":0.5,'
has '"failed":["wan: 1 of its lines are no figures"]'

# The report.
cat >>"$tmp/results/results.jsonl" <<'END'
{"bench":"zoo","row":"1 KiB","contender":"ours","what":"rate","unit":"GB/s","x":1024,"value":2,"q1":1.99,"q3":2.01,"n":3,"question":"zoo"}
{"bench":"zoo","row":"1 KiB","contender":"plain","what":"rate","unit":"GB/s","x":1024,"value":1,"q1":0.5,"q3":1.5,"n":3,"question":"zoo"}
{"bench":"zoo","row":"2 KiB","contender":"plain","what":"rate","unit":"GB/s","x":2048,"value":NaN,"q1":NaN,"q3":NaN,"n":3,"question":"zoo"}
{"bench":"zoo","row":"1 KiB","contender":"ours/plain","what":"rate","unit":"ratio","x":1024,"value":2,"q1":2,"q3":2,"n":3,"question":"zoo"}
{"bench":"zoo","case":"a | b","unit":"ns","value":1234567,"n":3,"question":"zoo"}
{"bench":"zoo","row":"cut o
END
printf 'before\n<!-- perf:summary -->\nold\n<!-- /perf:summary -->\nafter\n' >"$tmp/page"
reports "$tmp/results" --into "$tmp/page"
report=$tmp/results/REPORT.md
sed -n '/^## zoo/,$p' "$report" >"$tmp/got"
cat >"$tmp/wanted" <<'END'
## zoo

### zoo: rate, GB/s

|  | ours | plain |
|---|--:|--:|
| 1 KiB | 2 | 1 (0.5–1.5) |
| 2 KiB |  | - |

### zoo: rate, ratios

|  | ours/plain |
|---|--:|
| 1 KiB | 2 |

### zoo

| case | value | unit |
|---|--:|---|
| a \| b | 1234567 | ns |
END
diff -u "$tmp/wanted" "$tmp/got" || fail "not the wanted tables"
for text in 'There are no plots' 'Its figures mean nothing' '1 lines of the results could not be understood' \
	'FAILED in wan: wan' '| 250 B | 250–250 | met |' '| 1 us | 1–1 | met |' '^## growth' '^Not measured' '^| odd | - | bytes |' '| 0.5 | - | \*\*missed\*\* |'; do
	grep -q -- "$text" "$report" || fail "no \"$text\" in $(cat "$report")"
done
sed -n '1p;$p' "$tmp/page" | diff - <(printf 'before\nafter\n') || fail "more than what is between the markers was replaced"
! grep -q '^old' "$tmp/page" || fail "what was between the markers is still there"
grep -q '| 250 B | 250–250 | met |' "$tmp/page" || fail "the table is not in the page: $(cat "$tmp/page")"
cp "$tmp/page" "$tmp/once"
reports "$tmp/results" --into "$tmp/page"
cmp "$tmp/once" "$tmp/page" || fail "again is not the same"
expect 2 'No such file' "$perf/report" "$tmp/absent"
echo "perf_report: ok"
