// A peer on the libraries of js-libp2p, its yamux or its mplex: the command line of tests/interop/README.md.
import { dial } from './dial.js'
import { serve } from './serve.js'
import { pair } from './bench.js'
import { libraries, NotHere } from './link.js'
import { PIECE } from './wire.js'

const usage = 'usage: peer serve HOST:PORT | dial HOST:PORT CASE [ARG...] | pair STREAMS WRITE SECONDS'

// Options may stand anywhere. The library acknowledges by itself and waits for no reader, so --open-timeout-ms and
// --slow-ms are only taken.
function parse (words) {
	const options = { role: '', mux: 'yamux', chunk: PIECE, window: 0, openTimeoutMs: 0, closeTimeoutMs: 5000, slowMs: 0, apart: false }
	const numbers = {
		'--chunk': 'chunk',
		'--window': 'window',
		'--open-timeout-ms': 'openTimeoutMs',
		'--close-timeout-ms': 'closeTimeoutMs',
		'--slow-ms': 'slowMs'
	}
	const rest = []
	for (let i = 0; i < words.length; i++) {
		if (words[i] === '--role' && ['client', 'server'].includes(words[i + 1])) {
			options.role = words[++i]
		} else if (words[i] === '--mux' && words[i + 1] in libraries) {
			options.mux = words[++i]
		} else if (words[i] === '--apart') {
			options.apart = true
		} else if (words[i] in numbers && /^[0-9]+$/.test(words[i + 1])) {
			options[numbers[words[i]]] = Number(words[++i])
		} else if (words[i].startsWith('--')) {
			throw new Error(`${words[i]}: no such option, or a bad value`)
		} else {
			rest.push(words[i])
		}
	}
	return { options, rest }
}

async function run () {
	const { options, rest } = parse(process.argv.slice(2))
	if (rest.length === 2 && rest[0] === 'serve') {
		await serve(rest[1], { ...options, role: options.role || 'server' })
	} else if (rest.length >= 3 && rest[0] === 'dial') {
		await dial(rest[1], { ...options, role: options.role || 'client' }, rest.slice(2))
	} else if (rest.length === 4 && rest[0] === 'pair') {
		await pair(options.mux, rest.slice(1))
	} else {
		throw new Error(usage)
	}
}

run().then(() => process.exit(0), (err) => {
	if (err instanceof NotHere) {
		process.stderr.write(`${err.message}\n`)
		process.exit(77)
	}
	process.stderr.write(`js peer: ${err?.message ?? err?.type ?? err}\n`)
	process.exit(1)
})
