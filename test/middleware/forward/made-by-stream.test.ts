import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { describe, it, type TestContext } from 'node:test'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import { KeptThings } from '../../../lib/middleware/references/index.ts'
import { byteUpstream } from '../../support/byte-upstream.ts'
import { forwardGateway, OTHER_KEY } from '../../support/forward-gateway.ts'

const FIRST = 'event: thread.created\ndata: {"id":"thread_é","object":"thread"}\n\n'
const PING = ': ping\n\n'
const NAMELESS = FIRST.slice(FIRST.indexOf('data:'))
const MARK = '\ufeff'
/** What comes before the first event. */
const BEGINS: Record<string, string> = {
  'behind comments': PING + PING,
  'behind a byte order mark': MARK,
}
const REST =
  'event: thread.run.created\ndata: {"id":"run_1","thread_id":"thread_é"}\n\nevent: done\ndata: [DONE]\n\n'

/** Makes a thread by a run whose events are sent like this. */
async function runs(t: TestContext, send: (res: ServerResponse) => void, encoding = 'identity') {
  const upstream = await byteUpstream(t, ({ method }, res) => {
    if (method === 'GET') return void res.end('{}')
    res.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', 'content-encoding': encoding })
    send(res)
  })
  const kept = new KeptThings()
  t.after(() => kept.close())
  const price = { perRequest: '0.01' }
  const rules = [{ path: '/v1/threads/*rest', lines: ['line-0'], price }]
  const gateway = await forwardGateway(t, { lines: [upstream.url], rules, kept })
  const headers = { 'content-type': 'application/json' }
  const answer = await gateway.ask('/v1/threads/runs', { method: 'POST', body: '{"stream":true}', headers })
  return { gateway, answer }
}

const THREAD = `/v1/threads/${encodeURIComponent('thread_é')}`

describe('a thing whose making is told by a stream of events', () => {
  it('belongs to its account, and the events come as they were sent', async (t) => {
    const sent: [string, (res: ServerResponse) => void][] = [
      ['at once', (res) => res.end(FIRST + REST)],
      ['one event only', (res) => res.end(FIRST)],
      ['without an empty line', (res) => res.end(FIRST.trimEnd())],
      ['behind comments', (res) => res.end(PING + PING + FIRST + REST)],
      ['behind a byte order mark', (res) => res.end(MARK + FIRST + REST)],
      ['behind a mark, without a name', (res) => res.end(MARK + NAMELESS)],
      ['with other line ends', (res) => res.end((FIRST + REST).replaceAll('\n', '\r\n'))],
      [
        'byte by byte',
        async (res) => {
          for (const byte of Buffer.from(FIRST + REST)) {
            res.write(Buffer.from([byte]))
            await new Promise(setImmediate)
          }
          res.end()
        },
      ],
    ]
    for (const [how, send] of sent) {
      const { gateway, answer } = await runs(t, send)
      const text = Buffer.from(await answer.arrayBuffer()).toString()
      const begin = BEGINS[how] ?? ''
      const whole = how === 'behind a mark, without a name' ? MARK + NAMELESS : begin + FIRST + REST
      assert.ok(whole.startsWith(text.replaceAll('\r', '')), how)
      assert.ok(text.includes('"object":"thread"}'), how)
      assert.equal(text.includes('[DONE]'), !/only|without/.test(how), how)
      assert.equal((await gateway.ask(THREAD)).status, 200, how)
      const headers = { authorization: `Bearer ${OTHER_KEY}` }
      assert.equal((await gateway.ask(THREAD, { headers })).status, 404, how)
    }
  })

  it('belongs to its account where the line compresses unasked', async (t) => {
    for (const [encoding, compress] of [
      ['gzip', gzipSync],
      ['br', brotliCompressSync],
    ] as const) {
      const { gateway, answer } = await runs(t, (res) => res.end(compress(FIRST + REST)), encoding)
      assert.equal(await answer.text(), FIRST + REST, encoding)
      assert.equal((await gateway.ask(THREAD)).status, 200, encoding)
    }
  })

  it('is known before its first event is sent, and the stream goes on behind it', async (t) => {
    let line: ServerResponse | undefined
    const { gateway, answer } = await runs(t, (res) => {
      line = res
      res.write(FIRST)
    })
    const reader = answer.body?.getReader()
    assert.equal(Buffer.from((await reader?.read())?.value ?? []).toString(), FIRST)
    assert.equal((await gateway.ask(THREAD)).status, 200)
    line?.end(REST)
    assert.equal(Buffer.from((await reader?.read())?.value ?? []).toString(), REST)
    assert.equal((await reader?.read())?.done, true)
  })

  it('ends as a failure of the line where the stream breaks before it', async (t) => {
    const { gateway, answer } = await runs(t, (res) => {
      res.write('event: thread.created\n')
      setImmediate(() => res.destroy())
    })
    assert.equal(answer.status, 502)
    assert.deepEqual(await gateway.books(), { spent: '0', charges: 0 })
  })
})
