# Of run, which sources it: the cases of two nodes, which agree on everything before there are streams.
# shellcheck shell=bash disable=SC2154 # run sets them
# shellcheck disable=SC2046 # no word or one

# node_option PEER: ours is told to be a node.
node_option()
{
	[ "$1" != reeve ] || echo --upgrade
}

# node_serve OPTION...: as serve; sets id too.
node_serve()
{
	begin "${program[$server]}" serve 127.0.0.1:0 $(node_option "$server") "$@" || return
	read -r -t 20 -u "$from" _ id && return
	note FAIL start "$server does not say its id"
	return 1
}

# node_one CASE OPTION... WORD...: as one, to the server at hand.
node_one()
{
	one "$1" "$address" $(node_option "$dialer") --expect "$id" "${@:2}"
}

# node_cases MUXER [OPTION...]: both sides have only this multiplexer, and these options.
node_cases()
{
	local mux=$1 streams=plain name digest
	shift
	[[ " $* " != *" --negotiate "* ]] || streams=V1
	[[ " $* " != *" --lazy "* ]] || streams=lazy
	name=$mux/$streams
	node_serve --muxers "$mux" "$@" || return
	set -- --muxers "$mux" "$@"
	want="\"muxer\":\"/$mux/" node_one "$name agreed" "$@" agreed
	node_one "$name short" "$@" short "$short"
	if [ $quick = no ] || [ $streams != plain ]; then
		digest=$(sha256sum <"$tmp/file" | cut -d ' ' -f 1)
		want="\"sha256\":\"$digest\"" node_one "$name file" "$@" file "$tmp/file"
		node_one "$name fetch" "$@" fetch $((file_mib * mib))
		node_one "$name half" "$@" half
		node_one "$name reset" "$@" reset
	fi
	[ $streams = plain ] || node_one "$name unknown" "$@" unknown
	finish "$pid" "$server"
}

# node_choice NAME SERVER-MUXERS DIALER-MUXERS MUXER: what they have in common is chosen.
node_choice()
{
	node_serve --muxers "$2" || return
	want="\"muxer\":\"/$4/" node_one "$1" --muxers "$3" agreed
	finish "$pid" "$server"
}

# node_refused CASE DIALED SERVED OPTION...: the dialer fails, and the server says that a connection failed.  Ours have to
# say these words; a server that cannot know has "-".
node_refused()
{
	local name=$1 dialed=$2 served=$3 rc line="" text
	shift 3
	(exec timeout -k 5 20 "${program[$dialer]}" dial "$address" $(node_option "$dialer") "$@" agreed) \
		>"$dir/out" 2>"$dir/err"
	rc=$?
	text=$(tail -n 3 "$dir/err")
	if [ "$served" != - ]; then
		while read -r -t 10 -u "$from" line; do
			[ "${line#failed }" = "$line" ] || break
		done
	fi
	if [ $rc != 1 ] || [ -z "$text" ]; then
		note FAIL "$name" "exit $rc: $text $(cat "$dir/out")"
	elif [ "$dialer" = reeve ] && [[ $text != *"$dialed"* ]]; then
		note FAIL "$name" "not $dialed: $text"
	elif [ "$served" != - ] && [ "${line#failed }" = "$line" ]; then
		note FAIL "$name" "the server does not say that it failed"
	elif [ "$server" = reeve ] && [ "$served" != - ] && [[ $line != *"$served"* ]]; then
		note FAIL "$name" "not $served: $line"
	else
		note ok "$name" "dialer: $text; server: $line"
	fi
}

# Upgrades that fail, and none takes the server along.
node_failures()
{
	local other=12D3KooWM6CgA9iBFZmcYAHA6A2qvbAxqfkmrYiRQuz3XEsk4Ksv seen=REEVE-UP-MUXER none
	node_serve --muxers yamux || return
	node_refused "no muxer" "dial, REEVE-UP-MUXER: REEVE_ENOPROTO" REEVE-UP-MUXER --expect "$id" --muxers mplex
	[ "$dialer" != rust-node ] || seen=- # it looks at the id when all has been agreed
	node_refused "wrong peer" "dial, REEVE-UP-IDENTITY: REEVE_EIDENTITY (the peer is not who it should be)" \
		$seen --expect $other
	if [ "$dialer" != reeve ]; then
		node_refused "other security" "" REEVE-UP-SECURITY --expect "$id" --security /reeve/none/1
	fi
	node_one "after failures" agreed
	finish "$pid" "$server"
	none="--security /reeve/none/1"
	[ "$server" != reeve ] || none=--no-security
	# shellcheck disable=SC2086 # two words
	node_serve $none || return
	node_refused "no plaintext" "dial, REEVE-UP-SECURITY: REEVE_ENOPROTO" REEVE-UP-MUXER --expect "$id"
	finish "$pid" "$server"
}

# Every step takes a round trip of 40 ms, in pieces.
node_distance()
{
	local to
	node_serve --negotiate || return
	to=$pid
	if begin "$line" --to "$address" --delay-us 20000 --buffer 4096; then
		node_one distance --negotiate short 20
		finish "$pid" line
	fi
	finish "$to" "$server"
}

# node_direction SERVER DIALER
node_direction()
{
	local server=$1 dialer=$2 role=client mux=yamux address pid from id want line
	direction_begins
	node_cases yamux --negotiate
	node_cases mplex --negotiate --lazy
	node_cases mplex
	node_cases yamux
	if [ $quick = no ]; then
		node_cases yamux --negotiate --lazy
		node_cases mplex --negotiate
	fi
	node_choice "both, mplex" yamux,mplex mplex mplex
	node_choice "mplex, both" mplex yamux,mplex mplex
	node_choice "preference" yamux,mplex mplex,yamux mplex # the dialer's
	node_failures
	node_distance
}
