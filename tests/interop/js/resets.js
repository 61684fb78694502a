// The cases about resets, by either side and in every state of a stream.
import { ascii, be64, Generator, PIECE, WAS_RESET } from './wire.js'
import { nap, NotHere, Session, within } from './link.js'
import { check, echo, newToken, noted, start, streamsThere } from './ask.js'

const LIMIT_MS = 10000 // for a reset to come; that of hashicorp/yamux waits for its close timeout

// Writes until that fails, which it has to because of a reset.
async function untilReset (s, limit = LIMIT_MS) {
	for (const until = Date.now() + limit; Date.now() < until; await nap(10)) {
		try {
			await within(LIMIT_MS, 'a reset', s.write(ascii('x')))
		} catch (err) {
			check(s.wasReset(), `not a reset: ${err.message}`)
			return
		}
	}
	throw new Error("the peer's reset never arrived")
}

// Reads to the end or the reset, whichever the peer's library makes of it.
async function untilOver (s) {
	await within(LIMIT_MS, 'the end of a stream that the peer reset', s.each(() => {})).catch((err) => {
		check(s.wasReset(), err.message)
	})
}

export async function caseReset (at) {
	const from = Date.now()
	await untilReset(await start(at.session, 'R', ascii('x')))
	const heard = Date.now() - from

	const token = newToken()
	const s = await start(at.session, 'W', token)
	await s.exactly(1)
	s.reset()
	const saw = await noted(at.session, token)
	check(saw.kind === WAS_RESET, `our reset was seen as ${saw.kind}`)
	await echo(at.session, ascii('alive'))
	return { heard_ms: heard }
}

// Our resets, each in another state of the stream.
const mine = {
	'only opened': (at) => at.session.open(),
	'written to': (at) => start(at.session, 'E', ascii('x')),
	answered: async (at) => {
		const s = await start(at.session, 'E', ascii('x'))
		await s.exactly(1)
		return s
	},
	'after our FIN': async (at) => {
		const s = await start(at.session, 'W', newToken())
		await s.exactly(1)
		await s.end()
		return s
	},
	'after their FIN': async (at) => {
		const s = await start(at.session, 'H', newToken())
		await s.rest()
		return s
	},
	'with unread bytes': async (at) => {
		const s = await start(at.session, 'E', new Generator().bytes(1000))
		await s.exactly(1)
		return s
	},
	'while they write': async (at) => {
		const s = await start(at.session, 'G', be64(64 << 20))
		await s.end()
		await s.exactly(PIECE)
		return s
	}
}

// Theirs, by the number that the server is told.
async function their (at, state) {
	const s = await start(at.session, 'X', Buffer.concat([newToken(), Buffer.from([state])]))
	switch (state) {
		case 1:
			await s.exactly(1)
			break
		case 2:
			await s.end()
			break
		case 4:
			await s.write(new Generator().bytes(1000))
			break
		case 5:
			await s.write(new Generator().bytes(4 * PIECE)).catch(() => {})
			break
	}
	await untilOver(s)
	if (state === 3) {
		// The Rust crate sends nothing more after its FIN; hashicorp/yamux takes two seconds.
		await untilReset(s, 2500).catch(() => s.end())
	} else if (state !== 2) {
		await untilReset(s)
	}
}

// One state, and an echo behind it.
async function inState (at, name, run) {
	const own = at.options.apart ? { ...at, session: await Session.dial(at.address, at.options) } : at
	await run(own).catch((err) => { throw new Error(`${name}: ${err.message}`) })
	await echo(own.session, ascii('alive')).catch((err) => { throw new Error(`after ${name}: ${err.message}`) })
	if (own !== at) {
		await own.session.close(at.options.closeTimeoutMs).catch(() => {})
	}
}

export async function caseResets (at) {
	for (const [state, make] of Object.entries(mine)) {
		await inState(at, state, async (own) => { (await make(own)).reset() })
	}
	for (let state = 0; state < 6; state++) {
		await inState(at, `X ${state}`, (own) => their(own, state))
	}
	return { left: await streamsThere(at.session) }
}

export async function caseReply (at) {
	const n = 100000
	const s = await start(at.session, 'A', be64(n))
	const want = Buffer.from(new Generator().bytes(n))
	check(want.equals(Buffer.from(await within(LIMIT_MS, 'the bytes before a reset', s.exactly(n)))), 'the bytes differ')
	await untilOver(s)
	return { bytes: n, reset: s.wasReset() }
}

// The server does not read for so many milliseconds, until its library resets that stream; the others go on.
export async function caseSlow (at, ms) {
	if (at.session.mux === 'yamux') {
		throw new NotHere('a slow reader of yamux holds up nobody')
	}
	const bytes = new Generator().bytes(1000)
	const other = await start(at.session, 'E', bytes)
	check(Buffer.from(await other.exactly(1000)).equals(Buffer.from(bytes)), 'the echo differs')
	const token = newToken()
	const s = await start(at.session, 'L', Buffer.concat([token, be64(Number(ms))]))
	await s.exactly(1)
	const from = Date.now()
	const piece = Buffer.alloc(PIECE, 0x5a)
	try {
		while (Date.now() < from + Number(ms)) {
			await s.write(piece)
			await nap(0)
		}
	} catch (err) {
		check(s.wasReset(), `not a reset: ${err.message}`)
	}
	const held = Date.now() - from
	check(s.wasReset(), 'the slow reader was not reset while it was slow')
	await other.write(bytes)
	check(Buffer.from(await other.exactly(1000)).equals(Buffer.from(bytes)), 'the echo beside a slow reader differs')
	await other.end()
	await echo(at.session, bytes)
	const saw = await noted(at.session, token)
	check(saw.kind === WAS_RESET, `the slow reader saw ${saw.kind}`)
	return { held_ms: held, read: saw.total }
}
