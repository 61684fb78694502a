// The dialing side: one case, and one line of JSON when it went well.
import { createHash } from 'node:crypto'
import { open } from 'node:fs/promises'
import { ascii, be64, ENDED, Generator, PIECE } from './wire.js'
import { libraries, nap, NotHere, Session, within } from './link.js'
import { generate } from './serve.js'
import { bench } from './bench.js'
import { caseReply, caseReset, caseResets, caseSlow } from './resets.js'
import { check, echo, exchange, newToken, noted, start, streamsThere } from './ask.js'

const payload = new Generator().bytes(100000)

async function eachOf (count, atOnce, one) {
	let next = 0
	await Promise.all(Array.from({ length: Math.min(count, atOnce) }, async () => {
		while (next < count) {
			await one(next++)
		}
	}))
}

async function digestOf (s, sum, total) {
	await s.end()
	const digest = sum.digest()
	check(Buffer.concat([digest, be64(total)]).equals(await s.rest()), "the peer's digest or length differs")
	return digest.toString('hex')
}

// Two buffers do not take turns: the library keeps what it was given until it is sent.
async function caseFile (at, path) {
	const s = await start(at.session, 'S')
	const sum = createHash('sha256')
	const file = await open(path)
	const room = at.options.chunk > 0 ? at.options.chunk : (await file.stat()).size
	let total = 0
	for (;;) {
		const { bytesRead, buffer } = await file.read(Buffer.allocUnsafeSlow(room), 0, room)
		if (bytesRead === 0) {
			break
		}
		const piece = buffer.subarray(0, bytesRead)
		sum.update(piece)
		total += bytesRead
		await s.write(piece)
	}
	await file.close()
	return { bytes: total, sha256: await digestOf(s, sum, total) }
}

async function caseFetch (at, count) {
	const s = await start(at.session, 'G', be64(count))
	await s.end()
	const generator = new Generator()
	let same = true
	const total = await s.each((piece) => { same &&= Buffer.compare(piece, generator.bytes(piece.byteLength)) === 0 })
	check(same, 'the bytes differ')
	check(total === Number(count), `${total} bytes instead of ${count}`)
	return { bytes: total }
}

async function caseSingle (at, count) {
	const s = await start(at.session, 'S')
	const all = new Generator().bytes(Number(count))
	await s.write(all)
	await digestOf(s, createHash('sha256').update(all), all.byteLength)
	return caseFetch(at, count)
}

async function caseShort (at, count) {
	await eachOf(Number(count), 64, async (i) => {
		const bytes = new Generator().bytes(1 + i * 37 % 1000)
		bytes[0] = i
		await echo(at.session, bytes)
	})
	return { streams: Number(count) }
}

async function caseFirst (at) {
	check((await exchange(at.session, 'P', Buffer.alloc(0))).toString() === 'k', 'no answer to P')
	const s = await at.session.open()
	const hello = await within(10000, 'the greeting', s.exactly(5))
	check(Buffer.from(hello).toString() === 'hello', 'the greeting differs')
	const bytes = payload.subarray(0, 1000)
	await s.write(Buffer.concat([ascii('E'), bytes]))
	await s.end()
	check((await s.rest()).equals(bytes), 'the echo after the greeting differs')
	return { bytes: 1000 }
}

async function caseSilent (at, seconds) {
	const token = newToken()
	const s = await start(at.session, 'N', token)
	const until = Date.now() + Number(seconds) * 1000
	let sent = 0
	while (Date.now() < until) {
		await s.write(ascii('.'))
		sent++
		await nap(100)
	}
	await s.end()
	check((await within(10000, 'the end', s.rest())).byteLength === 0, 'a silent server wrote')
	const saw = await noted(at.session, token)
	check(saw.kind === ENDED && saw.total === sent, `${sent} bytes were sent, seen were ${saw.total} (${saw.kind})`)
	await echo(at.session, payload)
	return { bytes: sent }
}

async function caseHalf (at) {
	// Our end first: the reply comes after it.
	const reply = await exchange(at.session, 'S', payload)
	const digest = createHash('sha256').update(payload).digest()
	check(reply.equals(Buffer.concat([digest, be64(payload.byteLength)])), 'the reply after our end differs')
	await echo(at.session, payload)

	// The peer's end first: it reads on.
	let token = newToken()
	const s = await start(at.session, 'H', token)
	check((await s.rest()).toString() === 'bye', "the peer's farewell differs")
	await s.write(payload)
	await s.end()
	let saw = await noted(at.session, token)
	check(saw.kind === ENDED && saw.total === payload.byteLength, "bytes written after the peer's end were lost")

	// A clean end is not taken for a reset: the control of the reset case.
	token = newToken()
	const answer = await exchange(at.session, 'W', token)
	saw = await noted(at.session, token)
	check(saw.kind === ENDED && answer[0] === 0x6b, `a clean end was seen as ${saw.kind}`)
	return { bytes: payload.byteLength }
}

// Echoes on a stream, piece by piece, until told to stop.
async function murmur (session, on) {
	const s = await start(session, 'E')
	while (on.going) {
		await s.write(payload.subarray(0, 1000))
		check(Buffer.from(await s.exactly(1000)).equals(payload.subarray(0, 1000)), 'an echo differs')
	}
	await s.end()
	await s.rest()
}

async function casePings (at, count) {
	at.session.needsYamux('ping')
	const on = { going: true }
	const echoes = Array.from({ length: 4 }, () => murmur(at.session, on))
	await eachOf(Number(count), 16, () => within(10000, 'a ping', at.session.ping()))
	on.going = false
	await Promise.all(echoes)
	await echo(at.session, payload)
	return { pings: Number(count) }
}

async function caseCross (at, streams, length) {
	const n = Number(length)
	const want = Buffer.from(new Generator().bytes(n))
	const on = { going: true }
	const pings = (async () => {
		for (let asked = 0; ; asked++) {
			if (!on.going || at.session.mux === 'mplex') {
				return asked
			}
			await at.session.ping()
		}
	})()
	await Promise.all(Array.from({ length: Number(streams) }, async () => {
		const s = await start(at.session, 'C', be64(n))
		await generate(s, n, PIECE)
		await s.flushed()
		check(want.equals(Buffer.from(await s.exactly(n))), 'crossing bytes differ')
		await s.end()
		check((await s.rest()).byteLength === 0, 'bytes too many')
	}))
	on.going = false
	return { streams: Number(streams), bytes: n, pings: await pings }
}

// An echo under way: the rest of it is what came before its end, and no other bytes.
async function underWay (session) {
	const s = await start(session, 'E', payload)
	return { s, before: Buffer.from(await s.exactly(1000)) }
}

async function tail ({ s, before }) {
	const all = [before]
	try {
		await s.each((piece) => all.push(piece))
	} catch { /* a session that ends may take the rest of its streams with it */ }
	const got = Buffer.concat(all)
	check(got.equals(payload.subarray(0, got.byteLength)), 'the echo differs')
	return got.byteLength
}

async function goneWithin (session, ms) {
	for (const until = Date.now() + ms; Date.now() < until; await nap(20)) {
		try {
			const s = await session.open()
			await within(1000, 'end', s.end())
		} catch {
			return
		}
	}
	throw new Error('streams can still be opened')
}

async function theirs (at) {
	const going = await Promise.all([0, 1, 2].map(() => underWay(at.session)))
	await start(at.session, 'Y', ascii('g'))
	const read = await Promise.all(going.map((one) => within(10000, 'the end of an echo', tail(one))))
	await goneWithin(at.session, 5000)
	return read.reduce((a, b) => a + b)
}

async function ours (at) {
	const tokens = [newToken(), newToken(), newToken()]
	for (const token of tokens) {
		await start(at.session, 'N', Buffer.concat([token, payload]))
	}
	await at.session.close(at.options.closeTimeoutMs)
	const other = await Session.dial(at.address, at.options)
	for (const token of tokens) {
		const saw = await noted(other, token)
		check(saw.total === payload.byteLength, `of ${payload.byteLength} bytes arrived ${saw.total} (${saw.kind})`)
	}
	await other.close(at.options.closeTimeoutMs)
}

async function caseGoaway (at, which) {
	const out = {}
	if (which !== 'ours') {
		at.session.needsYamux('GO_AWAY')
		out.read = await theirs(at)
	}
	if (which !== 'theirs') {
		await ours(which === 'ours' ? at : { ...at, session: await Session.dial(at.address, at.options) })
	}
	return out
}

async function caseOpens (at, count) {
	await eachOf(Number(count), 64, async () => {
		const s = await start(at.session, 'E', ascii('x'))
		await s.exactly(1)
		await s.end()
		check((await s.rest()).byteLength === 0, 'bytes too many')
	})
	return { streams: Number(count), left: await streamsThere(at.session) }
}

async function caseHold (at, count) {
	const all = await Promise.all(Array.from({ length: Number(count) }, async () => {
		const s = await start(at.session, 'E', ascii('x'))
		await s.exactly(1)
		return s
	}))
	process.stdout.write('holding\n')
	await Promise.race([at.session.gone, ...all.map((s) => s.some().catch(() => {}))])
	await nap(0)
	return { reason: at.session.reason() }
}

// Every stream of mplex has one of the library's, its number with a letter.
function caseNames () {
	throw new NotHere('the library names its streams itself')
}

const cases = {
	file: [caseFile, 1],
	fetch: [caseFetch, 1],
	single: [caseSingle, 1],
	short: [caseShort, 1],
	first: [caseFirst, 0],
	silent: [caseSilent, 1],
	half: [caseHalf, 0],
	reset: [caseReset, 0],
	resets: [caseResets, 0],
	reply: [caseReply, 0],
	pings: [casePings, 1],
	cross: [caseCross, 2],
	goaway: [caseGoaway, 0, 1],
	opens: [caseOpens, 1],
	hold: [caseHold, 1],
	slow: [caseSlow, 1],
	names: [caseNames, 0],
	bench: [bench, 3]
}

export async function dial (address, options, words) {
	const [run, least, most = least] = cases[words[0]] ?? []
	if (run === undefined || words.length - 1 < least || words.length - 1 > most) {
		throw new Error(`cases: ${Object.keys(cases).join(', ')}`)
	}
	const session = await Session.dial(address, options)
	const from = Date.now()
	const said = await run({ session, address, options }, ...words.slice(1))
	process.stdout.write(`${JSON.stringify({ peer: libraries[options.mux], case: words[0], ms: Date.now() - from, ...said })}\n`)
	await session.close(options.closeTimeoutMs).catch(() => {})
}
