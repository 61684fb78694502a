#!/usr/bin/env bash
# The example with a node: three in a row; what the first one tells reaches the last one, each asks its neighbours, and all
# of them end when they are asked to.
. "${srcdir:-.}/tests/tools/common.sh"

# Built without Noise there is no such node.
! examples/node --listen nonsense 2>&1 | grep -q "not supported" || exit 77
expect 2 '^usage' examples/node --every
start_node()
{
	start 1 examples/node --every 20 "$@"
	exec {fd}<&9
	nodes+=("$pid")
	outs+=("$fd")
}
nodes=()
outs=()
start_node
start_node "$addr"
start_node "$addr" tcp://127.0.0.1:1

# heard I PATTERN: node I prints such a line.
heard()
{
	local line
	while read -r -t "$limit" -u "${outs[$1]}" line; do
		if grep -qE "$2" <<<"$line"; then
			return
		fi
	done
	fail "node $1 never said $2"
}
heard 2 '^no answer at tcp://127.0.0.1:1: '
heard 0 '^peers 1 heard [3-9] asked 1 answered [0-9]+$'
heard 1 '^peers 2 heard [3-9] asked 2 answered [0-9]+$'
heard 2 '^peers 1 heard [3-9] asked 1 answered [0-9]+$'
kill -INT "${nodes[1]}"
pid=${nodes[1]}
ended "the node in the middle" 0
heard 0 '^disconnected '
heard 2 '^disconnected '
for i in 0 2; do
	kill -TERM "${nodes[$i]}"
	pid=${nodes[$i]}
	ended "node $i" 0
done
echo "node: ok"
