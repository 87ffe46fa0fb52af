import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { createGateway } from '../../../examples/gateway/index.ts'
import { rawClient } from '../../support/app-server.ts'
import { type ByteUpstream, bytesOf, byteUpstream } from '../../support/byte-upstream.ts'
import { cleaningUp } from '../../support/clean-up.ts'

const cleanUp = cleaningUp()
let upstream: ByteUpstream
let served = 0

/** A body of each path that is served, and one over the size up to which nobody asks before reading. */
const PATHS: Readonly<Record<string, readonly [type: string, body: string]>> = {
  '/v1/chat/completions': ['application/json', chat()],
  '/v1/messages': ['application/json', chat()],
  '/v1/responses': ['application/json', JSON.stringify({ model: 'chat', input: long() })],
  '/v1/embeddings': ['application/json', JSON.stringify({ model: 'vectors', input: long() })],
  '/v1/videos': ['application/json', JSON.stringify({ model: 'video', prompt: long(), seconds: '4' })],
  '/v1/bytes': ['application/octet-stream', long()],
  '/v1/assistants': ['application/json', JSON.stringify({ text: long() })],
}
/** Stands for the key of an account of its own, which has no money. */
const FRESH = 'fresh'
/** As many as there are requests of such accounts. */
const fresh = Array.from({ length: 3 * Object.keys(PATHS).length }, (_, i) => `fresh-${i}`)
let freshTaken = 0

/** The answer to each key; undefined: it is served. */
const KEYS: Readonly<Record<string, readonly [header: string, status: number | undefined]>> = {
  none: ['', 401],
  unknown: ['authorization: Bearer sk-unknown\r\n', 401],
  malformed: ['authorization: Basic eA==\r\n', 401],
  disabled: ['authorization: Bearer sk-disabled\r\n', 403],
  'without money': ['authorization: Bearer sk-poor\r\n', 402],
  'of an account that was not looked up': [FRESH, 402],
  valid: ['authorization: Bearer sk-valid\r\n', undefined],
}
/** A refused caller sends its body at once or never. */
const SENDINGS = ['at once', 'after the 100', 'late'] as const

function long(): string {
  return 'words '.repeat(4000)
}

function chat(): string {
  const message = { role: 'user', content: long() }
  return JSON.stringify({ model: 'chat', max_tokens: 10, messages: [message] })
}

describe('Expect: 100-continue', { concurrency: 40 }, async () => {
  upstream = await byteUpstream(cleanUp, async (req, res) => {
    await bytesOf(req)
    res.writeHead(400, { 'content-type': 'application/json' }).end('{}')
  })
  const price = { inputPerMillion: '1', outputPerMillion: '1' }
  const gateway = await createGateway(
    {
      accounts: [
        { id: 'rich', balance: '100' },
        { id: 'poor', balance: '0' },
        ...fresh.map((id) => ({ id, balance: '0' })),
      ],
      keys: [
        { id: 'valid', account: 'rich', secret: 'sk-valid' },
        { id: 'disabled', account: 'rich', secret: 'sk-disabled', enabled: false },
        { id: 'poor', account: 'poor', secret: 'sk-poor' },
        ...fresh.map((id) => ({ id, account: id, secret: `sk-${id}` })),
      ],
      models: [
        { id: 'chat', kind: 'chat', price },
        { id: 'vectors', kind: 'embedding', price },
        { id: 'video', kind: 'video', price: { perSecond: '1' } },
      ],
      lines: [
        {
          id: 'line',
          provider: 'p',
          protocol: 'openai',
          baseUrl: `${upstream.url}/v1`,
          apiKey: 'k',
          models: { chat: 'c', vectors: 'e', video: 'v' },
        },
      ],
      passThrough: ['/v1/bytes', '/v1/assistants'].map((path) => ({
        path,
        lines: ['line'],
        price: { perRequest: '0.01' },
        raw: true,
      })),
    },
    { databaseUrl: 'memory:', logger: { info() {}, warn() {}, error() {} } },
  )
  const server = gateway.listen(0)
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  cleanUp.after(() => gateway.close())
  // The funds of an account are known from its first call on.
  const { head: first, body: rest } = ask('/v1/chat/completions', 'without money')
  await rawClient(port, first.replace('expect: 100-continue', 'connection: close') + rest).end()

  function ask(path: string, key: string) {
    const [type = '', body = ''] = PATHS[path] ?? []
    const [given = ''] = KEYS[key] ?? []
    const header = given === FRESH ? `authorization: Bearer sk-${fresh[freshTaken++]}\r\n` : given
    const head = `POST ${path} HTTP/1.1\r\nhost: x\r\n${header}expect: 100-continue\r\ncontent-type: ${type}\r\ncontent-length: ${body.length}\r\n\r\n`
    return { head, body }
  }

  for (const path of Object.keys(PATHS)) {
    for (const [key, [, refused]] of Object.entries(KEYS)) {
      for (const sending of SENDINGS) {
        const does = refused === undefined ? 'the body is asked for' : `${refused} in place of a 100`
        it(`${path}, key: ${key}, body: ${sending}: ${does}`, async () => {
          const { head, body } = ask(path, key)
          const client = rawClient(port, sending === 'at once' ? head + body : head)
          const startedAt = performance.now()
          if (refused !== undefined) {
            const received = await client.end()
            assert.match(received, new RegExp(`^HTTP/1\\.1 ${refused} `))
            assert.match(received, /^connection: close$/im)
            assert.doesNotMatch(received, / 100 Continue/)
            assert.equal(received.split('HTTP/1.1 ').length, 2, 'one answer')
            assert.ok(performance.now() - startedAt < 5000, 'closed soon')
            return
          }
          await client.until(sending === 'at once' ? '}' : '100 Continue\r\n\r\n')
          if (sending !== 'at once') {
            await sleep(sending === 'late' ? 100 : 0)
            assert.equal(client.received, 'HTTP/1.1 100 Continue\r\n\r\n', 'no answer before the body')
            client.socket.write(body)
          }
          await client.until('}')
          served++
          // The connection is in sync: it serves another request, unless its end was announced.
          client.socket.write('GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n')
          const received = await client.end()
          if (/^connection: close$/im.test(received.split('\r\n\r\n{')[0] ?? ''))
            assert.equal(sending, 'at once')
          else assert.match(received, /"status":"ok"\}$/)
        })
      }
    }
  }

  it('a body that is too large gets 413 in place of a 100', async () => {
    const { head } = ask('/v1/chat/completions', 'valid')
    const client = rawClient(port, head.replace(/(?<=content-length: )\d+/, '1000000000'))
    const received = await client.end()
    assert.match(received, /^HTTP\/1\.1 413 /)
    assert.match(received, /^connection: close$/im)
  })
})

describe('the upstream', () => {
  it('was asked for what was served, and for nothing else', () => {
    assert.equal(served, 3 * Object.keys(PATHS).length)
    assert.equal(upstream.requests.length, served)
  })
})
