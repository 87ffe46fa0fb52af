/**
 * The scripted upstream, a process of its own: `PORT=<port> node upstream.ts`, prints `listening <port>`.
 *
 * It has to be far cheaper than any target, or the load core would set the pace: answers are serialised once, and the
 * chunks of a stream are framed beforehand and written to the socket under the response.
 */

import type { ServerResponse } from 'node:http'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import {
  MESSAGES_PATH,
  messageStreamEvents,
  PLAIN_ANSWER,
  PLAIN_MESSAGE,
  paceOf,
  STREAM_CHUNKS,
  streamEvents,
  WRITTEN_PATH,
} from './workload.ts'

const COALESCED_WRITES = 4
const PACED_MS = 4

const plainAnswer = Buffer.from(PLAIN_ANSWER)
const plainMessage = Buffer.from(PLAIN_MESSAGE)
const streamHeaders = ['content-type', 'text/event-stream; charset=utf-8', 'cache-control', 'no-cache']

function framed(events: string[]): Buffer[] {
  return events.map((event) => Buffer.from(`${Buffer.byteLength(event).toString(16)}\r\n${event}\r\n`))
}

function joined(frames: Buffer[]): Buffer[] {
  const perWrite = Math.ceil(frames.length / COALESCED_WRITES)
  const writes: Buffer[] = []
  for (let i = 0; i < frames.length; i += perWrite) writes.push(Buffer.concat(frames.slice(i, i + perWrite)))
  return writes
}

const frames = {
  withUsage: framed(streamEvents(true)),
  bare: framed(streamEvents(false)),
  message: framed(messageStreamEvents()),
}
const writes = {
  withUsage: joined(frames.withUsage),
  bare: joined(frames.bare),
  message: joined(frames.message),
}

let written = 0

function answerStream(res: ServerResponse, body: string, which: keyof typeof frames) {
  res.writeHead(200, streamHeaders)
  res.flushHeaders()
  const pace = paceOf(body)
  const parts = pace === 'coalesced' ? writes[which] : frames[which]
  if (pace === 'hold') {
    // The start, and the first output: a gateway holds back what comes before it.
    for (const part of parts.slice(0, which === 'message' ? 3 : 2)) res.socket?.write(part)
    return
  }
  let next = 0
  const writeNext = () => {
    const { socket } = res
    if (socket === null || socket.destroyed) return
    const hasRoom = socket.write(parts[next++] as Buffer)
    written += STREAM_CHUNKS / parts.length
    if (next === parts.length) res.end()
    else if (pace === 'paced') setTimeout(writeNext, PACED_MS)
    else if (hasRoom) setImmediate(writeNext)
    else socket.once('drain', writeNext)
  }
  writeNext()
}

const server = createServer((req, res) => {
  if (req.url === WRITTEN_PATH) {
    res.end(String(Math.round(written)))
    return
  }
  const received: Buffer[] = []
  req.on('data', (chunk: Buffer) => received.push(chunk))
  req.on('end', () => {
    const body = Buffer.concat(received).toString('latin1')
    const request = JSON.parse(body) as { stream?: boolean; stream_options?: { include_usage?: boolean } }
    const isMessage = req.url === MESSAGES_PATH
    if (request.stream === true) {
      const usage = request.stream_options?.include_usage === true ? 'withUsage' : 'bare'
      answerStream(res, body, isMessage ? 'message' : usage)
      return
    }
    const answer = isMessage ? plainMessage : plainAnswer
    res.writeHead(200, ['content-type', 'application/json', 'content-length', String(answer.length)])
    res.end(answer)
  })
})

server.keepAliveTimeout = 120_000
server.listen(Number(process.env.PORT ?? 0), '127.0.0.1', 4096, () => {
  process.stdout.write(`listening ${(server.address() as AddressInfo).port}\n`)
})
