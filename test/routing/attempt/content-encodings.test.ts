import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { describe, it } from 'node:test'
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import { cleaningUp } from '../../support/clean-up.ts'
import {
  answer,
  eventsOf,
  exchange,
  gatewayFor,
  MODES,
  modeName,
  OPENAI,
  saidTo,
} from '../../support/exchange.ts'
import { startUpstream } from '../../support/scripted-upstream.ts'

const same = (bytes: Buffer): Buffer => bytes
const ENCODINGS: [string, (bytes: Buffer) => Buffer][] = [
  ['gzip', gzipSync],
  ['GZIP', gzipSync],
  ['x-gzip', gzipSync],
  ['br', brotliCompressSync],
  ['Br', brotliCompressSync],
  ['zstd', zstdCompressSync],
  ['deflate', deflateSync],
  ['deflate', deflateRawSync],
  ['Identity', same],
  ['identity, gzip', gzipSync],
  ['gzip, br', (bytes) => brotliCompressSync(gzipSync(bytes))],
]

/** Encodes all that is written to a response, event by event into one body. */
function encoding(res: ServerResponse, name: string, encode: (bytes: Buffer) => Buffer): ServerResponse {
  const chunks: Buffer[] = []
  const { writeHead, end } = res
  res.writeHead = ((status: number, headers: Record<string, string>) =>
    writeHead.call(res, status, { ...headers, 'content-encoding': name } as never)) as never
  res.write = ((chunk: string | Buffer) => chunks.push(Buffer.from(chunk as string)) > 0) as never
  res.end = ((chunk?: string | Buffer) => {
    if (chunk) chunks.push(Buffer.from(chunk as string))
    return end.call(res, encode(Buffer.concat(chunks)) as never, 'utf8' as never, undefined as never)
  }) as never
  return res
}

describe('an encoded answer', async () => {
  const cleanUp = cleaningUp()
  const upstream = await startUpstream()
  cleanUp.after(() => upstream.close())

  for (const mode of MODES) {
    for (const [name, encode] of ENCODINGS) {
      it(`is read: ${name}, ${encode.name} (${modeName(mode)})`, async (t) => {
        upstream.script = (res) => answer(encoding(res, name, encode), mode, 'Bonjour')
        const gateway = await gatewayFor(t, { lines: [{ url: upstream.url, protocol: mode.protocol }] })
        const got = await exchange(gateway, mode)
        assert.equal(got.status, 200, got.text)
        assert.equal(saidTo(mode, got), 'Bonjour')
        assert.equal(got.headers.get('content-encoding'), null)
        const { usage } = await gateway.entry(got.requestId)
        assert.equal(usage?.source, 'measured')
      })
    }
  }

  for (const [what, name, bytes] of [
    ['an unknown encoding', 'snappy', Buffer.from('{}')],
    ['bytes that are not so encoded', 'gzip', Buffer.from('{"choices":[]}')],
    ['a body that is cut', 'gzip', gzipSync(Buffer.from(JSON.stringify({ choices: [] }))).subarray(0, 15)],
    ['a body that is compressed too far', 'gzip', gzipSync(Buffer.alloc(20_000_000, ' '))],
    ['a body that is compressed too far', 'br', brotliCompressSync(Buffer.alloc(20_000_000, ' '))],
  ] as const) {
    it(`with ${what} is malformed: ${name}`, async (t) => {
      upstream.script = (res) =>
        void res.writeHead(200, { 'content-type': 'application/json', 'content-encoding': name }).end(bytes)
      const gateway = await gatewayFor(t, { lines: [{ url: upstream.url }] })
      const got = await exchange(gateway, OPENAI)
      assert.equal(got.errorCode, 'upstream_error')
      assert.equal((await gateway.entry(got.requestId)).usage, null)
    })
  }

  it('of an error is classified by its decoded text', async (t) => {
    const error = { error: { code: 'context_length_exceeded', message: 'too long' } }
    upstream.script = (res) =>
      void res
        .writeHead(400, { 'content-type': 'application/json', 'content-encoding': 'gzip' })
        .end(gzipSync(JSON.stringify(error)))
    const gateway = await gatewayFor(t, { lines: [{ url: upstream.url }] })
    assert.equal((await exchange(gateway, OPENAI)).errorCode, 'context_too_long')
  })

  it('of an interrupted stream keeps the data before the interruption', async (t) => {
    const mode = MODES.find(({ stream, protocol }) => stream && protocol === 'openai')
    assert.ok(mode)
    const whole = eventsOf(mode, ['Bonjour']).join('')
    upstream.script = (res) => {
      res.writeHead(200, { 'content-type': 'text/event-stream', 'content-encoding': 'gzip' })
      const bytes = gzipSync(whole)
      res.write(bytes.subarray(0, bytes.length - 4))
      setTimeout(() => res.socket?.resetAndDestroy(), 50)
    }
    const gateway = await gatewayFor(t, { lines: [{ url: upstream.url }] })
    const got = await exchange(gateway, mode)
    assert.equal(saidTo(mode, got), 'Bonjour')
    assert.equal(got.broken, false)
  })
})
