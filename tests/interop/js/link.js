// What lies under and over the library: a TCP socket as the connection it wants, and streams as calls that wait.
import { mplex } from '@libp2p/mplex'
import { AbstractMultiaddrConnection } from '@libp2p/utils'
import { yamux } from '@libp2p/yamux'
import { connect } from 'node:net'
import { Uint8ArrayList } from 'uint8arraylist'

// The library calls it; Node has it from version 22 on.
Promise.withResolvers ??= function () {
	let resolve, reject
	const promise = new this((yes, no) => { [resolve, reject] = [yes, no] })
	return { promise, resolve, reject }
}

const silent = Object.assign(() => {}, { error () {}, trace () {}, newScope: () => silent })
const LINGER_MS = 1000 // for the peer to end its half of a connection whose half was ended here

// The library takes the side of the one that made the connection for the client's.
class Tcp extends AbstractMultiaddrConnection {
	constructor (socket, role) {
		super({ log: silent, direction: role === 'client' ? 'outbound' : 'inbound' })
		this.socket = socket
		socket.setNoDelay(true)
		socket.on('data', (bytes) => this.onData(bytes))
		socket.on('drain', () => this.safeDispatchEvent('drain'))
		socket.on('error', (err) => { this.failed = err })
		socket.on('close', () => this.onTransportClosed(this.failed))
	}

	// Corked: a header and its body leave in one system call.
	sendData (list) {
		let canSendMore = true
		this.socket.cork()
		for (const bytes of list) {
			canSendMore = this.socket.write(bytes)
		}
		this.socket.uncork()
		return { sentBytes: list.byteLength, canSendMore }
	}

	async sendClose () {
		if (this.socket.destroyed) {
			return
		}
		await new Promise((resolve) => {
			const limit = setTimeout(() => this.socket.destroy(), LINGER_MS)
			this.socket.once('close', () => {
				clearTimeout(limit)
				resolve()
			})
			this.socket.end()
		})
	}

	sendReset () {
		this.socket.destroy()
	}

	sendPause () {
		this.socket.pause()
	}

	sendResume () {
		this.socket.resume()
	}
}

// A transport that takes everything at once drains within the turn, and who only writes would keep the turn for ever.
const TURN_MS = 5
let turn = 0 // when the turn at hand began, as far as known

async function turns () {
	if (performance.now() - turn > TURN_MS) {
		await new Promise((resolve) => setImmediate(resolve))
		turn = performance.now()
	}
}

// One stream. Reading begins with the first call that reads; until then the library keeps what came.
export class Bytes {
	#pending = new Uint8ArrayList()
	#take
	#reading = false
	#waiting = []
	ended = false // the peer's FIN came
	error // why the stream is no more, if not by FINs of both

	constructor (stream) {
		this.stream = stream
		stream.addEventListener('remoteCloseWrite', () => {
			this.ended = true
			this.#wake()
		})
		// The library has no error for a connection that is gone: only the FIN that is missing tells.
		stream.addEventListener('close', (event) => {
			if (event.error != null || !this.ended) {
				this.error = event.error ?? new Error('the connection ended')
			}
			this.#wake()
		})
		stream.addEventListener('drain', () => this.#wake())
	}

	#wake () {
		const waiting = this.#waiting
		this.#waiting = []
		waiting.forEach((resume) => resume())
	}

	#change () {
		return new Promise((resolve) => this.#waiting.push(resolve))
	}

	#read () {
		if (this.#reading) {
			return
		}
		this.#reading = true
		this.stream.addEventListener('message', (event) => {
			if (this.#take === undefined) {
				this.#pending.append(event.data)
			} else {
				this.#take(event.data)
			}
			if (this.#waiting.length > 0) {
				this.#wake()
			}
		})
	}

	// Whether nothing more will come than is pending. Throws when that is not because of the peer's FIN.
	#over () {
		if (this.stream.readBufferLength > 0) {
			return false
		}
		if (!this.ended && this.error !== undefined) {
			throw this.error
		}
		return this.ended
	}

	// What came, or null at the end.
	async some () {
		this.#read()
		while (this.#pending.byteLength === 0) {
			if (this.#over()) {
				return null
			}
			await this.#change()
		}
		const all = this.#pending
		this.#pending = new Uint8ArrayList()
		return all
	}

	async exactly (n) {
		this.#read()
		while (this.#pending.byteLength < n) {
			if (this.#over()) {
				throw new Error(`the stream ended ${n - this.#pending.byteLength} bytes early`)
			}
			await this.#change()
		}
		const out = this.#pending.slice(0, n)
		this.#pending.consume(n)
		return out
	}

	// Hands each piece to take as it comes, to the end; returns the number of bytes.
	async each (take) {
		let total = 0
		this.#take = (list) => {
			total += list.byteLength
			for (const piece of list) {
				take(piece)
			}
		}
		this.#take(this.#pending)
		this.#pending = new Uint8ArrayList()
		this.#read()
		this.counted = () => total
		while (!this.#over()) {
			await this.#change()
		}
		return total
	}

	async rest () {
		const all = []
		await this.each((piece) => all.push(piece))
		return Buffer.concat(all)
	}

	// Reads nothing for a while: what comes stays with the library, which aborts the stream, and ends the while, when that
	// is too much.
	async pause (ms) {
		this.stream.pause()
		for (const until = Date.now() + ms; Date.now() < until && this.error === undefined;) {
			await nap(10)
		}
		if (this.error === undefined) {
			this.stream.resume()
		}
	}

	// In calls of at most chunk bytes (0: one). Returns when the library wants more or, at last, has it all.
	// Its own onDrain() stays settled after the first time, hence the event.
	async write (bytes, chunk = 0) {
		const step = chunk > 0 ? chunk : bytes.byteLength
		for (let at = 0; at < bytes.byteLength; at += step) {
			const piece = step < bytes.byteLength ? bytes.subarray(at, at + step) : bytes
			if (!this.stream.send(piece)) {
				await this.writable()
				await turns()
			}
		}
	}

	async writable () {
		while (this.stream.writableNeedsDrain) {
			if (this.error !== undefined) {
				throw this.error
			}
			await this.#change()
		}
	}

	// Returns when every byte is with the transport.
	async flushed () {
		while (this.stream.writeBufferLength > 0 || this.stream.writableNeedsDrain) {
			if (this.error !== undefined) {
				throw this.error
			}
			await this.#change()
		}
	}

	// FIN, behind what was written.
	async end () {
		await this.stream.close()
	}

	reset () {
		this.stream.abort(new Error('reset'))
	}

	wasReset () {
		return this.stream.status === 'reset'
	}
}

// A case that cannot be expressed: exit 77.
export class NotHere extends Error {}

// How many openings a second, and frames for streams that are gone, the mplex takes from a peer. Its default is 5, which
// no case here could live with: it counts every opening.
const MPLEX_OPENINGS = 1e9

// The library's defaults, except for the window where one is given. That is the window a stream may grow to: the first
// one is not announced by the library, hence not ours to choose.
const muxers = {
	yamux: ({ window }) => yamux(window > 0 ? { streamOptions: { maxStreamWindowSize: Math.max(window, 262144) } } : {}),
	mplex: () => mplex({ disconnectThreshold: MPLEX_OPENINGS })
}

export const libraries = { yamux: 'js', mplex: 'js-mplex' }

export class Session {
	constructor (socket, options, onStream) {
		this.tcp = new Tcp(socket, options.role)
		this.mux = options.mux
		this.muxer = muxers[options.mux](options)().createStreamMuxer(this.tcp)
		this.muxer.addEventListener('stream', (event) => {
			if (onStream === undefined) {
				event.detail.abort(new Error('not a server'))
			} else {
				onStream(new Bytes(event.detail), this)
			}
		})
		this.gone = new Promise((resolve) => this.tcp.addEventListener('close', resolve))
	}

	static async dial (address, options) {
		const [host, port] = split(address)
		const socket = connect({ host, port })
		await new Promise((resolve, reject) => {
			socket.once('connect', resolve)
			socket.once('error', reject)
		})
		return new Session(socket, options)
	}

	async open () {
		return new Bytes(await this.muxer.createStream())
	}

	// For what only yamux has.
	needsYamux (what) {
		if (this.mux !== 'yamux') {
			throw new NotHere(`${this.mux} has no ${what}`)
		}
	}

	async ping () {
		this.needsYamux('ping')
		await this.muxer.ping()
	}

	// FINs, what was written, GO_AWAY, and the end of the connection.
	async close (limitMs) {
		this.closing = true
		const signal = AbortSignal.timeout(limitMs)
		await this.muxer.close({ signal })
		await this.tcp.close({ signal })
	}

	reason () {
		const code = this.muxer.remoteGoAway
		return code !== undefined ? `GO_AWAY ${code}` : this.tcp.failed?.message ?? 'the peer ended the connection'
	}
}

export function split (address) {
	const colon = address.lastIndexOf(':')
	return [address.slice(0, colon), Number(address.slice(colon + 1))]
}

export function nap (ms) {
	return new Promise((resolve) => setTimeout(resolve, ms))
}

// What promise gives, or an error when it takes longer.
export async function within (ms, what, promise) {
	let timer
	const limit = new Promise((resolve, reject) => {
		timer = setTimeout(() => reject(new Error(`${what}: nothing within ${ms} ms`)), ms)
	})
	try {
		return await Promise.race([promise, limit])
	} finally {
		clearTimeout(timer)
	}
}
