# Sourced by the tests of the installed programs and the examples.  Run from the top of the build folder.
#
# tmp: a folder of our own, removed at the end together with every program started by start.
set -u
export LC_ALL=C
cat_=tools/reeve-cat
limit=$((60 * ${REEVE_TEST_SLOW:-1})) # seconds for the whole script and everything that it started
[ "${REEVE_TEST_LIMITED:-}" = "$0" ] || REEVE_TEST_LIMITED=$0 exec timeout -k 5 "$limit" "$0" "$@"
tmp=$(mktemp -d /tmp/reeve-test.XXXXXX) || exit 99
pids=()
trap 'for p in "${pids[@]}"; do kill "$p" 2>/dev/null; done; rm -rf "$tmp"' EXIT

fail()
{
	echo "FAIL: $*"
	for f in "$tmp"/*.err; do
		[ ! -s "$f" ] || { echo "-- $(basename "$f"):"; head -20 "$f"; }
	done
	exit 1
}

# start FD PROGRAM...: in the background, its standard input ours; waits for the line "listening ADDR" on descriptor
# FD of it (1 or 2).  Sets pid and addr; the other output goes where ours does.
start()
{
	local fd=$1 word
	shift
	rm -f "$tmp/line"
	mkfifo "$tmp/line"
	if [ "$fd" = 1 ]; then
		"$@" <&0 >"$tmp/line" &
	else
		"$@" <&0 2>"$tmp/line" &
	fi
	pid=$!
	pids+=("$pid")
	exec 9<>"$tmp/line"
	read -r -t "$limit" word addr <&9 || fail "$*: said nothing"
	# What it says later has room in the pipe: it is a line or two.
	[ "$word" = listening ] || fail "$*: said \"$word $addr\""
}

# ended WHAT CODE: the program started last must end with this code.
ended()
{
	wait "$pid"
	local rc=$?
	[ $rc = "$2" ] || fail "$1: exit code $rc, not $2"
}

# said PATTERN: the program started last has written this line, and nothing else, since it was ready.
said()
{
	local line
	read -r -t "$limit" line <&9 || fail "no line, expected $1"
	grep -qE "$1" <<<"$line" || fail "said \"$line\", expected $1"
}

# expect CODE PATTERN PROGRAM...: exit code, and exactly one line on standard error that matches.
expect()
{
	local code=$1 pattern=$2 rc
	shift 2
	"$@" </dev/null >"$tmp/expect.out" 2>"$tmp/expect.err"
	rc=$?
	[ $rc = "$code" ] || fail "$*: exit code $rc, not $code"
	[ "$(wc -l <"$tmp/expect.err")" = 1 ] || fail "$*: not one line on standard error"
	grep -qE "$pattern" "$tmp/expect.err" || fail "$*: no $pattern"
}
