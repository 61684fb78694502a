#!/usr/bin/env bash
# The echo servers, over tcp and unix: each one's address line, the example client, a stream of 8 MiB, an end by
# SIGTERM and by SIGINT with exit code 0.
. "${srcdir:-.}/tests/tools/common.sh"

# round SERVER ADDR SIGNAL
round()
{
	start 1 "$1" "$2" 2>"$tmp/server.err"
	case $addr in
	*:0) fail "$1: the port is not filled in: $addr" ;;
	esac
	examples/echo_client "$addr" >"$tmp/out" 2>"$tmp/client.err" || fail "$1: client"
	[ "$(cat "$tmp/out")" = "hello from reeve" ] || fail "$1: the text came back as $(cat "$tmp/out")"
	examples/echo_client "$addr" "another text" >"$tmp/out" 2>"$tmp/client.err" || fail "$1: client"
	[ "$(cat "$tmp/out")" = "another text" ] || fail "$1: the text came back as $(cat "$tmp/out")"
	"$cat_" "$addr" <"$tmp/data" >"$tmp/back" 2>"$tmp/cat.err" || fail "$1: reeve-cat"
	cmp "$tmp/data" "$tmp/back" || fail "$1: not what was sent"
	kill -"$3" "$pid"
	ended "$1 $2 SIG$3" 0
	[ ! -s "$tmp/server.err" ] || fail "$1: said something"
}

head -c 8M /dev/urandom >"$tmp/data"
for server in examples/echo_server examples/echo_async; do
	round $server tcp://127.0.0.1:0 TERM
	round $server tcp://127.0.0.1:0 INT
	round $server "unix://$tmp/sock" TERM
	[ ! -e "$tmp/sock" ] || fail "$server: its socket file stayed"
done
expect 1 'Connection refused.*ECONNREFUSED' examples/echo_client tcp://127.0.0.1:1
expect 2 '^usage' examples/echo_client
echo "echo: ok"
