// Throughput into a peer that discards; bytes count when it has said that it read them.
import { createServer } from 'node:net'
import { once } from 'node:events'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { number } from './wire.js'
import { libraries, Session } from './link.js'
import { start } from './ask.js'
import { attend } from './serve.js'

// By the clock, which is sure to come in time.
async function flood (session, write, until) {
	const s = await start(session, 'B')
	const bytes = Buffer.alloc(write, 0x5a)
	while (Date.now() < until) {
		await s.write(bytes)
	}
	await s.end()
	return number(await s.exactly(8))
}

export async function bench (at, ...words) {
	const [streams, write, seconds] = words.map(Number)
	const from = process.hrtime.bigint()
	const used = process.cpuUsage()
	const until = Date.now() + seconds * 1000
	const counts = await Promise.all(Array.from({ length: streams }, () => flood(at.session, write, until)))
	const bytes = counts.reduce((a, b) => a + b)
	const took = Number(process.hrtime.bigint() - from) / 1e9
	const cpu = process.cpuUsage(used)
	if (!(bytes > 0)) {
		throw new Error('no byte arrived')
	}
	return {
		streams,
		write,
		bytes,
		bytes_per_s: Math.round(bytes / took),
		cpu_ns_per_kib: Number(((cpu.user + cpu.system) * 1000 / (bytes / 1024)).toFixed(1))
	}
}

const WARM_UP_S = 1 // until the code is compiled

// Both ends in this process, the serving one on a thread of its own. The bytes are those of the warm-up too.
export async function pair (mux, words) {
	const server = new Worker(new URL(import.meta.url), { workerData: mux })
	const [port] = await once(server, 'message')
	const options = { role: 'client', mux, chunk: 0, window: 0 }
	const session = await Session.dial(`127.0.0.1:${port}`, options)
	const at = { session, options }
	const warm = await bench(at, words[0], words[1], WARM_UP_S)
	const said = await bench(at, ...words)
	said.bytes += warm.bytes
	process.stdout.write(`${JSON.stringify({ peer: libraries[mux], ...said })}\n`)
}

if (!isMainThread) {
	const server = createServer((socket) => { attend(socket, { role: 'server', mux: workerData, chunk: 0, window: 0 }) })
	server.listen(0, '127.0.0.1', () => parentPort.postMessage(server.address().port))
}
