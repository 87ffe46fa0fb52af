import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { deflateRawSync, gzipSync } from 'node:zlib'
import { Agent, request } from 'undici'
import { ADMIN_TOKEN, type Attack, type Target } from './neighbourhood.ts'

const MIB = 1 << 20
const dispatcher = new Agent({ connections: 200, headersTimeout: 60_000, bodyTimeout: 60_000 })
const JSON_HEAD = { 'content-type': 'application/json' }

interface Sent {
  readonly path?: string
  readonly method?: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  readonly key?: string
  readonly headers?: Record<string, string>
  readonly body?: string | Buffer
}

/** Sends one request and reads what comes; whatever becomes of it is fine. */
async function send({ url, key: own }: Target, signal: AbortSignal, sent: Sent): Promise<void> {
  const { path = '/v1/chat/completions', method = 'POST', key = own, headers, body } = sent
  try {
    const answer = await request(url + path, {
      dispatcher,
      method,
      signal,
      headers: { authorization: `Bearer ${key}`, ...JSON_HEAD, ...headers },
      body: body ?? null,
    })
    await answer.body.dump({ limit: 64 * MIB })
  } catch {}
}

/** Sends `atOnce` at a time, one after the other, until it is over. */
const repeat =
  (atOnce: number, next: (target: Target, signal: AbortSignal, number: number) => Promise<unknown>): Attack =>
  async (target, signal) => {
    let number = 0
    const loop = async () => {
      while (!signal.aborted) await next(target, signal, number++)
    }
    await Promise.all(Array.from({ length: atOnce }, loop))
  }

/** The same request again and again. */
const repeated = (atOnce: number, sent: Sent): Attack =>
  repeat(atOnce, (target, signal) => send(target, signal, sent))

const chat = (content: string, more = ''): string =>
  `{"model":"chat","messages":[{"role":"user","content":${JSON.stringify(content)}}]${more}}`
const behaving = (behaviour: string, more = ''): string => chat(`behave:${behaviour}`, more)
const STREAM = ',"stream":true'
/** A body of which this stands `times` over where the text of messages would. */
const filled = (piece: string, times: number, open = '[', close = ']'): string =>
  `{"model":"chat","messages":${open}${`${piece},`.repeat(times)}${piece}${close}}`

/** Opens connections that write `first`, and then `more`, until it is over. */
const connections =
  (count: number, first: (target: Target) => string | Buffer, everyMs = 0, more = 'x'): Attack =>
  async (target, signal) => {
    const sockets = Array.from({ length: count }, () => {
      const socket = connect(target.port, '127.0.0.1')
      socket.on('error', () => {})
      socket.write(first(target))
      socket.pause()
      return socket
    })
    while (!signal.aborted) {
      await sleep(everyMs || 50)
      if (everyMs > 0)
        for (const socket of sockets)
          if (!socket.destroyed && socket.writableLength < 65_536) socket.write(more)
    }
    for (const socket of sockets) socket.destroy()
  }

const head = ({ key }: Target, more: string): string =>
  `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\ncontent-type: application/json\r\n${more}\r\n`
const whole = (target: Target, body: string): string =>
  head(target, `content-length: ${Buffer.byteLength(body)}\r\n`) + body

const EMPTY_NAMES = `{"model":"chat","metadata":{${'"":1,'.repeat(2_000_000)}"":1}}`
const GZIP_BOMB = gzipSync(Buffer.alloc(300 * MIB, ' '))
const DEFLATE_BOMB = deflateRawSync(Buffer.alloc(300 * MIB, ' '))
const MULTIPART = `${'--b\r\ncontent-disposition: form-data; name="prompt"\r\n\r\nx\r\n'.repeat(200_000)}--b--\r\n`
const LISTS = ['/v1/calls', '/v1/models', '/v1/videos', '/v1/account', '/api/v3/contents/generations/tasks']

/** By name: what one tenant does, or somebody without a key. */
export const ATTACKS: Readonly<Record<string, Attack>> = {
  // Requests that are large, or built to be dear.
  'millions of elements': repeated(2, { body: filled('0', 9_000_000) }),
  'millions of messages': repeated(2, { body: filled('{"role":"user","content":""}', 600_000) }),
  'millions of levels': repeated(2, { body: filled('[', 9_000_000, '[', '') }),
  'levels of objects': repeated(2, { body: filled('{"a":', 3_000_000, '', '') }),
  'millions of empty names': repeated(2, { body: EMPTY_NAMES }),
  'one long text': repeated(2, { body: chat('word '.repeat(3_800_000)) }),
  'one long word': repeated(2, { body: chat('w'.repeat(19_000_000)) }),
  'one long text of escapes': repeated(2, { body: chat('\u0001'.repeat(3_200_000)) }),
  'a long text of emoji': repeated(2, { body: chat('😀'.repeat(4_500_000)) }),
  'large bodies on many connections': repeated(12, { body: chat('word '.repeat(3_800_000)) }),
  'large bodies of the poor': repeated(8, { key: 'sk-poor', body: chat('word '.repeat(3_800_000)) }),
  'large bodies of a dead key': repeated(8, { key: 'sk-dead', body: chat('word '.repeat(3_800_000)) }),
  'large bodies of unknown keys': repeat(8, (target, signal, number) =>
    send(target, signal, { key: `sk-${number}`, body: chat('word '.repeat(3_800_000)) }),
  ),
  'bodies of 19 KB of the poor': repeated(1, { key: 'sk-poor', body: chat('word '.repeat(3_900)) }),
  'bodies of 19 KB of many members': repeated(4, { body: filled('{"role":"user"}', 1_100) }),
  'gzip bombs': repeated(4, { headers: { 'content-encoding': 'gzip' }, body: GZIP_BOMB }),
  'deflate bombs': repeated(4, { headers: { 'content-encoding': 'deflate' }, body: DEFLATE_BOMB }),
  'forms of 200,000 parts': repeated(2, {
    path: '/v1/videos',
    headers: { 'content-type': 'multipart/form-data; boundary=b' },
    body: MULTIPART,
  }),
  'tools with deep schemas': repeated(4, {
    path: '/v1/messages',
    body: `{"model":"chat","max_tokens":1,"messages":[{"role":"user","content":"x"}],"tools":[${'{"name":"t","input_schema":{"type":"object","properties":{"a":{"type":"string"}}}},'.repeat(100_000)}{"name":"t","input_schema":{"type":"object"}}]}`,
  }),
  'items of a response': repeated(4, {
    path: '/v1/responses',
    body: `{"model":"chat","input":[${'{"role":"user","content":"x"},'.repeat(300_000)}{"role":"user","content":"x"}]}`,
  }),
  'provider constraints': repeat(8, (target, signal) =>
    send(target, signal, {
      headers: { 'x-gateway-provider': `{"only":[${'"a",'.repeat(3_000)}"first"]}` },
      body: chat('hi'),
    }),
  ),
  // Connections that stay open.
  'slow uploads': connections(400, (target) => head(target, 'content-length: 1000000\r\n'), 20),
  'slow uploads of much': connections(
    60,
    (target) => head(target, 'content-length: 19000000\r\n'),
    10,
    'x'.repeat(20_000),
  ),
  'chunks of one byte': connections(
    8,
    (target) => head(target, 'transfer-encoding: chunked\r\n'),
    5,
    '1\r\nx\r\n'.repeat(2_000),
  ),
  'callers that read nothing of large answers': connections(40, (target) => whole(target, behaving('large'))),
  'callers that read nothing of streams': connections(100, (target) =>
    whole(target, behaving('many-events', STREAM)),
  ),
  'silent upstreams': connections(400, (target) => whole(target, behaving('silent'))),
  'thousands of idle connections': connections(2000, () => ''),
  'heads that never end': connections(500, () => 'GET /v1/models HTTP/1.1\r\nhost: x\r\n', 100, 'x: y\r\n'),
  'pipelined requests': connections(
    10,
    () => 'GET /v1/models HTTP/1.1\r\nhost: x\r\n\r\n'.repeat(5_000),
    200,
    'GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n'.repeat(100),
  ),
  'callers who leave at once': repeat(20, async (target) => {
    const socket = connect(target.port, '127.0.0.1')
    socket.on('error', () => {})
    socket.write(whole(target, chat('hi', STREAM)))
    await sleep(5)
    socket.destroy()
  }),
  // Requests that make an upstream ill, or an upstream that is.
  'flagged prompts': repeated(8, { body: behaving('flagged') }),
  'invalid requests': repeated(8, { body: behaving('invalid') }),
  'files that are not there': repeated(8, { body: behaving('missing') }),
  'prompts that break the upstream': repeated(8, { body: behaving('broken') }),
  'prompts that cut the stream': repeated(8, { body: behaving('cut', STREAM) }),
  'prompts that reset the connection': repeated(8, { body: behaving('reset') }),
  'prompts answered with nonsense': repeated(8, { body: behaving('nonsense') }),
  'prompts answered with nothing': repeated(8, { body: behaving('empty') }),
  'another model that is limited': repeated(8, { body: behaving('limited').replace('"chat"', '"other"') }),
  'another model that fails': repeated(8, { body: behaving('broken').replace('"chat"', '"other"') }),
  'a model that is limited': repeated(8, { body: behaving('limited') }),
  'large answers': repeated(4, { body: behaving('large') }),
  'large answers that are kept': repeat(4, (target, signal, number) =>
    send(target, signal, {
      headers: { 'idempotency-key': `kept-${performance.now()}-${number}` },
      body: behaving('large'),
    }),
  ),
  'answers of millions of values': repeated(2, { body: behaving('values') }),
  'compressed bombs for an answer': repeated(2, { body: behaving('bomb') }),
  'large events in pieces': repeated(4, { body: behaving('large-event', STREAM) }),
  'many small events': repeated(4, { body: behaving('many-events', STREAM) }),
  // Requests that are repeated often.
  'one idempotency key': repeated(20, { headers: { 'idempotency-key': 'same' }, body: chat('hi') }),
  'an idempotency key each': repeat(20, (target, signal, number) =>
    send(target, signal, {
      headers: { 'idempotency-key': `each-${performance.now()}-${number}` },
      body: chat('hi'),
    }),
  ),
  'lists and filters': repeat(8, (target, signal, number) =>
    send(target, signal, {
      method: 'GET',
      path: `${LISTS[number % LISTS.length]}?${number % 2 ? 'limit=1000' : 'status=failed&code=x&model=y'}`,
    }),
  ),
  'cursors made up': repeat(8, (target, signal) =>
    send(target, signal, { method: 'GET', path: `/v1/calls?limit=100&cursor=${'A'.repeat(8_000)}` }),
  ),
  'long queries': repeat(8, (target, signal) =>
    send(target, signal, { method: 'GET', path: `/v1/calls?${'a=b&'.repeat(3_500)}` }),
  ),
  tickets: repeated(8, {
    path: '/v1/tickets',
    body: JSON.stringify({ request_id: 'req_none', message: 'm'.repeat(MIB) }),
  }),
  'unknown models': repeat(8, (target, signal, number) =>
    send(target, signal, { body: chat('hi').replace('"chat"', `"m${number}${'x'.repeat(500)}"`) }),
  ),
  'unknown paths': repeat(8, (target, signal, number) =>
    send(target, signal, { method: 'GET', path: `/v1/${number}/${'x'.repeat(8_000)}` }),
  ),
  'videos one after the other': repeated(8, {
    path: '/v1/videos',
    body: '{"model":"film","prompt":"behave:broken"}',
  }),
  'the poor': repeated(20, { key: 'sk-poor', body: chat('hi') }),
  'unknown keys': repeat(20, (target, signal, number) =>
    send(target, signal, { key: `sk-${number}`, body: chat('hi') }),
  ),
  // The attacks without a key.
  'guesses of the admin token': repeat(20, (target, signal, number) =>
    send(target, signal, { method: 'GET', path: '/admin/accounts', key: `${ADMIN_TOKEN}${number}` }),
  ),
  'the pages of everybody': repeat(20, (target, signal, number) =>
    send(target, signal, {
      method: 'GET',
      key: '',
      path: ['/readyz', '/openapi.json', '/healthz', '/metrics', '/console'][number % 5] as string,
    }),
  ),
  'requests that are none': repeat(20, async (target) => {
    const socket = connect(target.port, '127.0.0.1')
    socket.on('error', () => {})
    socket.end('GET / HTTP/1.1\r\nhost: x\r\ncontent-length: x\r\n\r\n')
    await new Promise((resolve) => socket.once('close', resolve).resume())
  }),
  'heads that are too large': repeat(20, (target, signal) =>
    send(target, signal, { method: 'GET', path: '/v1/models', headers: { x: 'y'.repeat(15_000) } }),
  ),
  'upgrades without a right': repeat(20, async (target) => {
    const socket = connect(target.port, '127.0.0.1')
    socket.on('error', () => {})
    socket.write('GET /v1/realtime HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n')
    await new Promise((resolve) => socket.once('close', resolve).resume())
  }),
}
