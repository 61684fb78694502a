#!/usr/bin/env bash
# How a stream ends: answered after the end of the question, half-closed the other way round, reset with a code,
# silent for too long, a reader of our output that goes away.
. "${srcdir:-.}/tests/tools/common.sh"

# The answer is made only when the whole question is there.
coproc answerer { question=$(cat) && printf 'you said %s' "$question"; }
start 2 "$cat_" --listen tcp://127.0.0.1:0 <&"${answerer[0]}" >&"${answerer[1]}"
eval "exec ${answerer[0]}<&- ${answerer[1]}>&-"
out=$(printf hi | "$cat_" "$addr" 2>"$tmp/cat.err") || fail "question: exit code $?"
[ "$out" = "you said hi" ] || fail "question: answer \"$out\""
ended "answering side" 0

# The listening side speaks first, and ends first.
start 2 "$cat_" --listen tcp://127.0.0.1:0 <<<"welcome" >"$tmp/got"
coproc late { read -r first && echo "after $first"; }
"$cat_" "$addr" <&"${late[0]}" >&"${late[1]}" 2>"$tmp/cat.err" || fail "speaking second: exit code $?"
ended "speaking first" 0
[ "$(cat "$tmp/got")" = "after welcome" ] || fail "speaking second: $(cat "$tmp/got")"

# A reset carries its code; the side that asked for it ends in order.
start 2 "$cat_" --listen tcp://127.0.0.1:0 </dev/null >"$tmp/got"
"$cat_" --reset-code 77 "$addr" </dev/null >"$tmp/none" 2>"$tmp/cat.err" || fail "--reset-code: exit code $?"
said '^reeve-cat: .*reset by the peer, code 77 \(REEVE-STREAM-0001\)$'
ended "after a reset" 1

# Silence, with an input that never ends.
mkfifo "$tmp/silent"
exec 8<>"$tmp/silent"
start 2 "$cat_" --listen --timeout 60 tcp://127.0.0.1:0 <&8 >"$tmp/got"
"$cat_" --timeout 0.3 "$addr" <&8 >"$tmp/none" 2>"$tmp/cat.err"
[ $? = 1 ] || fail "--timeout: exit code $?"
grep -qE '^reeve-cat: .*deadline passed \(REEVE_ETIMEDOUT\)$' "$tmp/cat.err" || fail "--timeout: no word of it"
said '^reeve-cat: .* \(REEVE[-_].*\)$'
ended "the side that was left" 1
start 2 "$cat_" --timeout 0.2 --listen tcp://127.0.0.1:0
said '^reeve-cat: .*deadline passed \(REEVE_ETIMEDOUT\)$'
ended "waiting for nobody" 1

# Nobody reads our output any more.
start 2 "$cat_" --listen tcp://127.0.0.1:0 </dev/null > >(head -c 1 >/dev/null)
head -c 4M /dev/zero | "$cat_" "$addr" >"$tmp/none" 2>"$tmp/cat.err"
[ "${PIPESTATUS[1]}" = 1 ] || fail "peer without a reader: exit code ${PIPESTATUS[1]}"
said '^reeve-cat: standard output: Broken pipe'
ended "without a reader" 1
echo "cat_ends: ok"
