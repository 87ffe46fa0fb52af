import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import fc from 'fast-check'
import { WebSocketServer } from 'ws'
import type { CleanUp } from '../../support/clean-up.ts'
import { ENDPOINTS, VIDEO_ENDPOINTS } from '../../support/endpoints.ts'
import { chatEvents, messageEvents } from '../../support/scripted-upstream.ts'

/** How the upstream serves a request. One that hangs or drips goes on until its connection is closed. */
export type Serving = 'now' | 'late' | 'hangs' | 'drips'

/** An upstream of all endpoints, which counts what it is still asked for. */
export interface CountingUpstream {
  readonly url: string
  /** Requests and sessions that are neither answered nor aborted, by what they are. */
  readonly inUse: ReadonlyMap<object, string>
  /** How the next requests are served; those to create a video are always served at once. */
  serving: Serving
}

/** How soon nothing may be left of a request. The machine is shared with the callers and the upstream. */
export const SOON_MS = 5000

const PIECE = Buffer.alloc(16 * 1024, 'x')

/** Starts one. */
export async function countingUpstream(cleanUp: CleanUp): Promise<CountingUpstream> {
  const inUse = new Map<object, string>()
  const sessions = new WebSocketServer({ noServer: true })
  const server = createServer((req, res) => {
    inUse.set(res, `${req.method} ${req.url}`)
    res.on('close', () => inUse.delete(res))
    void serve(req, res, upstream.serving).catch(() => {})
  })
  server.on('connection', (socket) => socket.on('error', () => {}))
  server.on('upgrade', (req, socket, head) => {
    inUse.set(socket, `UPGRADE ${req.url}`)
    socket.on('close', () => inUse.delete(socket)).on('error', () => {})
    if (upstream.serving === 'hangs') socket.resume().on('end', () => socket.destroy())
    else
      sessions.handleUpgrade(req, socket, head, (session) => {
        session.on('error', () => {})
        session.send('hello')
      })
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  cleanUp.after(() => {
    server.close()
    server.closeAllConnections()
    for (const session of sessions.clients) session.terminate()
  })
  const upstream: CountingUpstream = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    inUse,
    serving: 'now',
  }
  return upstream
}

async function serve(req: IncomingMessage, res: ServerResponse, how: Serving): Promise<void> {
  const chunks: Buffer[] = []
  for await (const chunk of req) chunks.push(chunk)
  const body = Buffer.concat(chunks).toString('latin1')
  const { method, url = '' } = req
  const isCreate = method === 'POST' && /\/videos$|\/tasks$/.test(url)
  const isContent = method === 'GET' && /\/content$|\/download$/.test(url)
  // Whether a video was made must be known, and a task that is read is everybody's: both are waited for.
  const isSwift = isCreate || (method === 'GET' && !isContent)
  const serving = isSwift && how !== 'late' ? 'now' : how
  if (serving === 'late') await sleep(40)
  if (serving === 'hangs') return
  if (isContent) return send(res, 'video/mp4', [PIECE, PIECE], PIECE, serving)
  if (/"stream": ?true/.test(body)) {
    const events = (url.endsWith('/messages') ? messageEvents : chatEvents)(['Hello', ' there', ' you'])
    return send(res, 'text/event-stream', events, ': still here\n\n', serving)
  }
  if (url.includes('/audio/')) return send(res, 'application/octet-stream', ['done'], PIECE, serving)
  const endpoint = [...ENDPOINTS, ...VIDEO_ENDPOINTS].find(
    ({ path }) => url === path || url.startsWith(`${path}/video_`),
  )
  if (serving === 'drips') return send(res, 'application/json', ['{'], ' ', serving)
  await (endpoint?.answer as ((res: ServerResponse) => unknown) | undefined)?.(res)
}

async function send(
  res: ServerResponse,
  type: string,
  pieces: readonly (string | Buffer)[],
  drop: string | Buffer,
  serving: Serving,
): Promise<void> {
  res.writeHead(200, { 'content-type': type })
  if (serving !== 'drips') {
    res.end(Buffer.concat(pieces.map((piece) => Buffer.from(piece))))
    return
  }
  for (const piece of pieces.slice(0, Math.ceil(pieces.length / 2))) res.write(piece)
  while (!res.destroyed) {
    await sleep(10)
    if (!res.writableNeedDrain) res.write(drop)
  }
}

const BOUNDARY = 'x-boundary-x'

function form(fields: Readonly<Record<string, string>>, file?: string): string {
  const parts = Object.entries(fields).map(
    ([name, value]) => `--${BOUNDARY}\r\ncontent-disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`,
  )
  if (file !== undefined)
    parts.push(
      `--${BOUNDARY}\r\ncontent-disposition: form-data; name="image"; filename="a.png"\r\ncontent-type: image/png\r\n\r\n${file}\r\n`,
    )
  return `${parts.join('')}--${BOUNDARY}--\r\n`
}

/** A request of the search. `body` is undefined where there is none. */
export interface Breakable {
  readonly name: string
  readonly method: string
  readonly path: string
  readonly type?: string
  /** Makes a body of about so many bytes. */
  readonly body?: ((size: number) => string) | undefined
  readonly upgrade?: true
}

const multipart = `multipart/form-data; boundary=${BOUNDARY}`

/** All endpoints. `video` is the id of a finished one. */
export function breakables(video: string): readonly Breakable[] {
  const json = [...ENDPOINTS, ...VIDEO_ENDPOINTS].map(({ path, kind, request }): Breakable => {
    const { body } = request(kind)
    return {
      name: path,
      method: 'POST',
      path,
      type: 'application/json',
      body: (size) => body.replace('{', `{${' '.repeat(size)}`),
    }
  })
  const streamed = json
    .filter(({ path }) => path === '/v1/chat/completions' || path === '/v1/messages')
    .map(
      (each): Breakable => ({
        ...each,
        name: `${each.name}, streamed`,
        body: (size) => (each.body?.(size) ?? '').replace('{', '{"stream":true,'),
      }),
    )
  const upload = (name: string, path: string, type: string, body: Breakable['body']): Breakable => ({
    name,
    method: 'POST',
    path,
    type,
    body,
  })
  return [
    ...json,
    ...streamed,
    upload('edits as a form', '/v1/images/edits', multipart, (size) =>
      form({ model: 'image', prompt: 'a cat' }, 'p'.repeat(size)),
    ),
    upload('a video as a form', '/v1/videos', multipart, (size) =>
      form({ model: 'video', prompt: 'w'.repeat(1 + Math.min(size, 20_000)) }),
    ),
    upload('an upload of bytes', '/v1/audio/bytes', 'application/octet-stream', (size) => 'b'.repeat(size)),
    upload('an upload of a form', '/v1/audio/form', multipart, (size) =>
      form({ language: 'en' }, 'f'.repeat(size)),
    ),
    upload(
      'an upload of JSON',
      '/v1/audio/json',
      'application/json',
      (size) => `{"input":"${'j'.repeat(size)}"}`,
    ),
    upload('an upload of text', '/v1/audio/text', 'text/plain', (size) => `t${'t'.repeat(size)}`),
    { name: 'a download', method: 'GET', path: '/v1/audio/download' },
    { name: 'the content of a video', method: 'GET', path: `/v1/videos/${video}/content` },
    { name: 'a video', method: 'GET', path: `/v1/videos/${video}` },
    { name: 'a WebSocket', method: 'GET', path: '/v1/realtime', upgrade: true },
  ]
}

/** How a request is broken off. */
export interface Break {
  /** Which request, of all that there are. */
  readonly which: number
  readonly size: number
  readonly chunked: boolean
  readonly expects: boolean
  readonly place: 'head' | 'body' | 'behind' | 'answer'
  /** Where in the head or the body, from 0 to 1. */
  readonly share: number
  /** How long the connection rests before it is broken, in milliseconds. */
  readonly rest: number
  readonly way: 'close' | 'reset' | 'half' | 'garbage'
  readonly serving: Serving
}

/** Generates them. */
export const breaks: fc.Arbitrary<Break> = fc.record({
  which: fc.nat(),
  size: fc.constantFrom(0, 100, 5000, 20_000, 300_000),
  chunked: fc.boolean(),
  expects: fc.boolean(),
  place: fc.constantFrom('head', 'body', 'body', 'behind', 'answer'),
  share: fc.integer({ min: 0, max: 999 }).map((thousandths) => thousandths / 1000),
  rest: fc.constantFrom(0, 0, 3, 25, 80),
  way: fc.constantFrom('close', 'reset', 'half', 'garbage'),
  serving: fc.constantFrom('now', 'late', 'hangs', 'drips'),
})

/** The parts that were sent until the connection was broken. */
export interface BrokenOff {
  readonly headSent: boolean
  readonly bodySent: boolean
  /** Whether the bytes are no HTTP from some place on. */
  readonly isBroken: boolean
  readonly received: string
}

/** Sends a request and breaks it off. Resolves once the connection is closed on this side. */
export async function breakOff(
  port: number,
  key: string,
  id: string,
  asked: Breakable,
  broken: Break,
): Promise<BrokenOff> {
  const text = asked.body?.(broken.size)
  const chunked = text !== undefined && broken.chunked
  const lines = [
    `${asked.method} ${asked.path} HTTP/1.1`,
    'host: x',
    `authorization: Bearer ${key}`,
    `x-request-id: ${id}`,
    ...(asked.type ? [`content-type: ${asked.type}`] : []),
    ...(text === undefined
      ? []
      : [chunked ? 'transfer-encoding: chunked' : `content-length: ${text.length}`]),
    ...(text !== undefined && broken.expects ? ['expect: 100-continue'] : []),
    ...(asked.upgrade
      ? [
          'connection: upgrade',
          'upgrade: websocket',
          'sec-websocket-version: 13',
          'sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==',
        ]
      : []),
  ]
  const head = `${lines.join('\r\n')}\r\n\r\n`
  const body = text === undefined ? '' : chunked ? inChunks(text) : text
  const place = broken.place === 'body' && body === '' ? 'behind' : broken.place
  // In a body of a known length there are no wrong bytes, and behind a whole request there is another one.
  const isBroken = broken.way === 'garbage' && place === 'body' && chunked
  const socket = connect(port, '127.0.0.1').setNoDelay(true)
  let received = ''
  socket.setEncoding('latin1').on('error', () => {})
  socket.on('data', (data: string) => {
    if (received.length < 10_000) received += data
  })
  const closed = once(socket, 'close')
  await once(socket, 'connect')
  if (place === 'head') socket.write(head.slice(0, Math.floor(broken.share * (head.length - 2))), 'latin1')
  else {
    socket.write(head, 'latin1')
    if (body !== '' && broken.expects) await Promise.race([once(socket, 'data').catch(() => {}), sleep(60)])
    const share = Math.floor(broken.share * body.length)
    // In a chunk, wrong bytes would be part of it.
    const length = place !== 'body' ? body.length : isBroken ? share - (share % CHUNK_BYTES) : share
    if (length > 0 && socket.writable) socket.write(body.slice(0, length), 'latin1')
    if (place === 'answer' && received === '')
      await Promise.race([once(socket, 'data').catch(() => {}), sleep(100)])
  }
  if (broken.rest > 0) await sleep(broken.rest)
  if (isBroken && socket.writable) socket.write('\r\n\0zz\r\n\r\n', 'latin1')
  else if (broken.way === 'reset') socket.resetAndDestroy()
  else if (broken.way === 'half') socket.end()
  else socket.destroy()
  // A side that has ended, or broken its request, waits for the other.
  await Promise.race([
    closed,
    sleep(SOON_MS).then(() => Promise.reject(new Error(`${id}: the gateway keeps the connection`))),
  ]).finally(() => socket.destroy())
  return {
    headSent: place !== 'head',
    bodySent: place === 'behind' || place === 'answer',
    isBroken,
    received,
  }
}

const PIECE_BYTES = 1000
/** With its size, `3e8`, and the ends of both lines. */
const CHUNK_BYTES = PIECE_BYTES + 7

/** Returns a text as chunks. */
function inChunks(text: string): string {
  let all = ''
  for (let at = 0; at < text.length; at += PIECE_BYTES) {
    const piece = text.slice(at, at + PIECE_BYTES)
    all += `${piece.length.toString(16)}\r\n${piece}\r\n`
  }
  return `${all}0\r\n\r\n`
}
