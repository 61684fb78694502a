#!/usr/bin/env bash
# 64 MiB of random bytes in both directions at once through two reeve-cat, over tcp and unix, files and pipes, with both
# protocols, agreed beforehand or not.
. "${srcdir:-.}/tests/tools/common.sh"

# both ADDR OPTION...: the options are those of both ends
both()
{
	local at=$1
	shift
	start 2 "$cat_" "$@" --listen "$at" <"$tmp/a" >"$tmp/b.out"
	"$cat_" --progress=always "$@" "$addr" <"$tmp/b" >"$tmp/a.out" 2>"$tmp/progress" || fail "$at $*: dialling side"
	ended "$at $*: listening side" 0
	cmp "$tmp/a" "$tmp/a.out" || fail "$at $*: towards the dialling side"
	cmp "$tmp/b" "$tmp/b.out" || fail "$at $*: towards the listening side"
	grep -qE '^sent 64 MiB .*100% .*received 64 MiB .*/s ' "$tmp/progress" || fail "$at $*: $(cat "$tmp/progress")"
	! grep -q "[^ -~]" "$tmp/progress" || fail "$at $*: the progress is not plain text"
	[ "$(awk 'length > 80' "$tmp/progress")" = "" ] || fail "$at $*: the progress is wider than 80 columns"
}

head -c 64M /dev/urandom >"$tmp/a"
head -c 64M /dev/urandom >"$tmp/b"
both tcp://127.0.0.1:0
both tcp://127.0.0.1:0 --plaintext
both "unix://$tmp/sock" --mux mplex
both "unix://$tmp/sock" --plaintext --mux mplex,yamux
both "unix://$tmp/sock"
! "$cat_" --noise nonsense 2>&1 | grep -q EINVAL || both tcp://127.0.0.1:0 --noise # else built without
[ ! -e "$tmp/sock" ] || fail "the socket file stayed"

# Pipes, one direction, and a reader that is slower than the writer.
start 2 "$cat_" -l "unix://$tmp/sock" </dev/null > >(cksum >"$tmp/sum")
sum_pid=$!
head -c 8M "$tmp/a" | "$cat_" "$addr" >"$tmp/none" 2>"$tmp/cat.err" || fail "from a pipe"
ended "to a pipe" 0
wait "$sum_pid" 2>/dev/null
[ ! -s "$tmp/none" ] || fail "something came back"
echo "cat_data: ok"
