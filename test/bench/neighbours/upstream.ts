/** A worker: the upstream of both tenants. It does what the first kilobyte of a request says after `behave:`. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { parentPort } from 'node:worker_threads'
import { gzipSync } from 'node:zlib'
import {
  answerJson,
  chatAnswer,
  chatAnswerOf,
  chatChunk,
  chatEvents,
  stream,
} from '../../support/scripted-upstream.ts'

type Behaviour = (res: ServerResponse, isStream: boolean) => unknown

const error = (code: string) => ({ error: { message: 'no', type: code, code } })
// As bytes: what is made anew for each answer would hold up the other tenant here, and not in the gateway.
const LARGE_EVENT = Buffer.from(chatChunk({ content: 'x'.repeat(4 << 20) }))
const LARGE_ANSWER = Buffer.from(chatAnswerOf('long answer '.repeat(500_000)))
const MANY_VALUES = Buffer.from(`{"choices":[${'{},'.repeat(1_000_000)}{}]}`)
const MANY_EVENTS = Buffer.from(chatChunk({ content: 'x' }).repeat(1000))
const GZIP_BOMB = gzipSync(Buffer.alloc(200 << 20, ' '))

const BEHAVIOURS: Readonly<Record<string, Behaviour>> = {
  flagged: (res) => answerJson(res, 403, error('content_policy_violation')),
  invalid: (res) => answerJson(res, 400, error('invalid_value')),
  missing: (res) => answerJson(res, 404, error('file_not_found')),
  broken: (res) => answerJson(res, 500, error('server_error')),
  nonsense: (res) => res.writeHead(200, { 'content-type': 'application/json' }).end('{"choices":'),
  empty: (res) => chatAnswer(res, ''),
  limited: (res) => answerJson(res, 429, error('rate_limit_exceeded')),
  reset: (res) => res.destroy(),
  silent: () => {},
  cut: async (res) => {
    await stream(res, chatEvents(['a', 'b']).slice(0, 2), { end: false })
    res.destroy()
  },
  large: (res) => res.writeHead(200, { 'content-type': 'application/json' }).end(LARGE_ANSWER),
  values: (res) => res.writeHead(200, { 'content-type': 'application/json' }).end(MANY_VALUES),
  bomb: (res) =>
    res.writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' }).end(GZIP_BOMB),
  'large-event': async (res) => {
    res.writeHead(200, { 'content-type': 'text/event-stream' })
    for (let at = 0; at < LARGE_EVENT.length && !res.destroyed; at += 16_384) {
      res.write(LARGE_EVENT.subarray(at, at + 16_384))
      await sleep(0)
    }
    res.end(chatEvents([]).join(''))
  },
  'many-events': async (res) => {
    res.writeHead(200, { 'content-type': 'text/event-stream' })
    for (let i = 0; i < 200 && !res.destroyed; i++)
      if (!res.write(MANY_EVENTS))
        await Promise.race([new Promise((resolve) => res.once('drain', resolve)), sleep(5000)])
    res.end(chatEvents([]).join(''))
  },
}

const server = createServer((req, res) => {
  res.on('error', () => {})
  void firstBytes(req).then((start) => {
    if (start === undefined) return
    const behaviour = /behave:([a-z-]+)/.exec(start)?.[1] ?? ''
    const isStream = start.includes('"stream":true')
    const own = Object.hasOwn(BEHAVIOURS, behaviour) && BEHAVIOURS[behaviour]
    if (own) own(res, isStream)
    else if (isStream) void stream(res, chatEvents(['Hello', ' there']), { paceMs: 1 })
    else chatAnswer(res)
  })
})
server.listen(0, '127.0.0.1', () => parentPort?.postMessage((server.address() as AddressInfo).port))

/** Keeps the first and last kilobyte of a body: to parse one of 20 MB would hold up the other tenant too. Undefined if cut off. */
async function firstBytes(req: IncomingMessage): Promise<string | undefined> {
  let [start, end] = ['', '']
  try {
    for await (const chunk of req) {
      if (start.length < 1024) start += String(chunk.subarray(0, 1024))
      end = String(chunk.subarray(-1024))
    }
  } catch {
    return
  }
  return start + end
}
