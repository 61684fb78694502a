// What the cases have in common: a stream with a request, and questions to the server.
import { randomBytes } from 'node:crypto'
import { ascii, number } from './wire.js'
import { nap } from './link.js'

export function check (good, what) {
	if (!good) {
		throw new Error(what)
	}
}

export function newToken () {
	return randomBytes(8)
}

export async function start (session, what, bytes = Buffer.alloc(0)) {
	const s = await session.open()
	await s.write(Buffer.concat([ascii(what), bytes]))
	return s
}

// A whole request, our FIN, and all that comes back.
export async function exchange (session, what, bytes) {
	const s = await start(session, what, bytes)
	await s.end()
	return s.rest()
}

// An answer of known length before our FIN.
export async function ask (session, what, bytes, length) {
	const s = await start(session, what, bytes)
	const answer = await s.exactly(length)
	await s.end()
	return Buffer.from(answer)
}

// What the serving side noted of the stream with this token.
export async function noted (session, token) {
	const answer = await ask(session, 'Q', token, 9)
	return { kind: String.fromCharCode(answer[0]), total: number(answer.subarray(1)) }
}

export async function echo (session, bytes) {
	check((await exchange(session, 'E', bytes)).equals(Buffer.from(bytes)), 'the echo differs')
}

// The number of streams that the server has, once it is small: streams linger for a moment.
export async function streamsThere (session) {
	let left
	for (let i = 0; i < 100; i++) {
		left = number(await exchange(session, 'D', Buffer.alloc(0)))
		if (left <= 4) {
			return left
		}
		await nap(100)
	}
	throw new Error(`${left} streams are left at the server`)
}
