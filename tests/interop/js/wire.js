// The bytes of the requests and the generated stream, as tests/interop/README.md has them.

// How a watched stream ended.
export const ENDED = 'E'
export const WAS_RESET = 'R'
export const UNKNOWN = 'T'

export const PIECE = 64 * 1024

export function ascii (text) {
	return Buffer.from(text, 'latin1')
}

export function be64 (n) {
	const out = Buffer.alloc(8)
	out.writeBigUInt64BE(BigInt(n))
	return out
}

export function number (bytes) {
	return Number(Buffer.from(bytes).readBigUInt64BE())
}

// A token is only ever compared, so its text will do.
export function tokenName (bytes) {
	return Buffer.from(bytes).toString('hex')
}

// xorshift64, its words little-endian; in halves of 32 bits, because BigInt is ten times slower.
export class Generator {
	high = 0x9e3779b9
	low = 0x7f4a7c15
	word = new Uint8Array(8)
	used = 8

	next () {
		let { high, low } = this
		high ^= (high << 13) | (low >>> 19)
		low ^= low << 13
		low ^= (low >>> 7) | (high << 25)
		high ^= high >>> 7
		high ^= (high << 17) | (low >>> 15)
		low ^= low << 17
		this.high = high
		this.low = low
	}

	store (out, at) {
		this.next()
		for (let i = 0; i < 4; i++) {
			out[at + i] = this.low >>> (8 * i)
			out[at + 4 + i] = this.high >>> (8 * i)
		}
	}

	// The next n bytes, in memory of their own: the library keeps what it is given to send.
	bytes (n) {
		const out = new Uint8Array(n)
		let at = 0
		while (at < n) {
			if (this.used === 8 && n - at >= 8) {
				this.store(out, at)
				at += 8
				continue
			}
			if (this.used === 8) {
				this.store(this.word, 0)
				this.used = 0
			}
			out[at++] = this.word[this.used++]
		}
		return out
	}
}
