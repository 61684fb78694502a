#!/usr/bin/env bash
# The echo servers, over tcp and unix, with both protocols: each one's address line, the example client, a stream of 8 MiB,
# an end by SIGTERM and by SIGINT with exit code 0.
. "${srcdir:-.}/tests/tools/common.sh"

# round SERVER ADDR SIGNAL OPTION...: the options are those of both ends
round()
{
	local server=$1 at=$2 signal=$3
	shift 3
	start 1 $server "$@" "$at" 2>"$tmp/server.err"
	case $addr in
	*:0) fail "$server: the port is not filled in: $addr" ;;
	esac
	examples/echo_client "$@" "$addr" >"$tmp/out" 2>"$tmp/client.err" || fail "$server $*: client"
	[ "$(cat "$tmp/out")" = "hello from reeve" ] || fail "$server $*: the text came back as $(cat "$tmp/out")"
	examples/echo_client "$@" "$addr" "another text" >"$tmp/out" 2>"$tmp/client.err" || fail "$server $*: client"
	[ "$(cat "$tmp/out")" = "another text" ] || fail "$server $*: the text came back as $(cat "$tmp/out")"
	"$cat_" "$@" "$addr" <"$tmp/data" >"$tmp/back" 2>"$tmp/cat.err" || fail "$server $*: reeve-cat"
	cmp "$tmp/data" "$tmp/back" || fail "$server $*: not what was sent"
	kill -"$signal" "$pid"
	ended "$server $* $at SIG$signal" 0
	[ ! -s "$tmp/server.err" ] || fail "$server $*: said something"
}

head -c 8M /dev/urandom >"$tmp/data"
for server in examples/echo_server examples/echo_async; do
	round $server tcp://127.0.0.1:0 TERM
	round $server tcp://127.0.0.1:0 INT --mux mplex
	round $server "unix://$tmp/sock" TERM --mux yamux
	[ ! -e "$tmp/sock" ] || fail "$server: its socket file stayed"
	round $server "unix://$tmp/sock" TERM --mux mplex
	[ ! -e "$tmp/sock" ] || fail "$server: its socket file stayed"
done
expect 1 'Connection refused.*ECONNREFUSED' examples/echo_client tcp://127.0.0.1:1
expect 2 '^usage' examples/echo_client
expect 2 '^usage' examples/echo_client --mux quic tcp://127.0.0.1:1
expect 2 '^usage' examples/echo_async --mux quic tcp://127.0.0.1:0
! examples/echo_server --mux quic tcp://127.0.0.1:0 || fail "echo_server takes an unknown protocol"
echo "echo: ok"
