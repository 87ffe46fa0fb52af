import assert from 'node:assert/strict'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { describe, it, type TestContext } from 'node:test'
import { KeptThings } from '../../../lib/middleware/references/index.ts'
import { rawClient } from '../../support/app-server.ts'
import { bytesOf, byteUpstream } from '../../support/byte-upstream.ts'
import { forwardGateway, OTHER_KEY } from '../../support/forward-gateway.ts'
import { KEY } from '../../support/gateway.ts'
import { until } from '../../support/until.ts'

const MADE = JSON.stringify({ id: 'thing_1', object: 'thing' })
const JSON_TYPE = 'application/json'
const FORM_TYPE = 'multipart/form-data; boundary=b'
const FORM = '--b\r\ncontent-disposition: form-data; name="file"; filename="f"\r\n\r\nbytes\r\n--b--\r\n'

/** What makes a thing: its collection, and the body. */
const CREATES = [
  ['/v1/files', FORM_TYPE, FORM],
  ['/v1/batches', JSON_TYPE, '{"endpoint":"/v1/embeddings"}'],
  ['/v1/vector_stores', JSON_TYPE, '{}'],
  ['/v1/threads', JSON_TYPE, '{}'],
] as const

/** How far the line has come with its answer when the caller leaves. */
const MOMENTS = ['before the head', 'behind the head', 'within the body'] as const
type Moment = (typeof MOMENTS)[number]

const head = (method: string, path: string, type: string, length: number): string =>
  `${method} ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${KEY}\r\ncontent-type: ${type}\r\ncontent-length: ${length}\r\n\r\n`

function begin(res: ServerResponse, moment: Moment): void {
  if (moment === 'before the head') return
  res.writeHead(200, { 'content-type': JSON_TYPE }).flushHeaders()
  if (moment === 'within the body') res.write(MADE.slice(0, 8))
}

function end(res: ServerResponse, moment: Moment): void {
  if (moment === 'before the head') res.writeHead(200, { 'content-type': JSON_TYPE })
  res.end(moment === 'within the body' ? MADE.slice(8) : MADE)
}

/** A gateway, and a line that holds back its answers to all but GET. */
async function holding(t: TestContext, moment: Moment) {
  let held: ServerResponse | undefined
  const read: string[] = []
  const upstream = await byteUpstream(t, async (req: IncomingMessage, res) => {
    if (req.method === 'GET') return void res.end('{}')
    const body = await bytesOf(req).catch(() => undefined)
    if (!body) return
    read.push(body.toString())
    held = res
    begin(res, moment)
  })
  const kept = new KeptThings()
  t.after(() => kept.close())
  const price = { perRequest: '0.01' }
  const paths = [...CREATES.map(([path]) => path), '/v1/moderations']
  const rules = paths
    .flatMap((path) => [path, `${path}/*rest`])
    .map((path) => ({ path, lines: ['line-0'], price }))
  const gateway = await forwardGateway(t, { lines: [upstream.url], kept, rules })
  return { upstream, gateway, read, held: () => held as ServerResponse }
}

describe('a caller that leaves while a line makes something for it', () => {
  for (const moment of MOMENTS)
    for (const [path, type, body] of CREATES)
      it(`owns it and pays for it: ${path}, ${moment}`, async (t) => {
        const { upstream, gateway, read, held } = await holding(t, moment)
        const client = rawClient(gateway.port, head('POST', path, type, body.length) + body)
        await until(() => read.length === 1, 'the line has the whole request')
        client.socket.destroy()
        const [call] = gateway.openCalls
        await until(() => call?.left === true)
        end(held(), moment)
        await until(() => gateway.openCalls.size === 0, 'the end of the call', 2000)

        const { status, billing, routing } = await gateway.entry(call?.id ?? '')
        assert.deepEqual([status, billing?.charged], [499, '0.01'])
        assert.deepEqual(routing?.disconnect, { policy: 'abort', ended: 'drained' })
        const answer = await gateway.ask(`${path}/thing_1`)
        assert.equal(answer.status, 200)
        const other = { headers: { authorization: `Bearer ${OTHER_KEY}` } }
        assert.equal((await gateway.ask(`${path}/thing_1`, other)).status, 404)
        assert.deepEqual(read, [body], 'made once')
        assert.equal(upstream.requests.length, 2)
        assert.deepEqual(await gateway.books(), { spent: '0.02', charges: 2 })
      })

  it('owns nothing and pays nothing where the line fails', async (t) => {
    const { gateway, read, held } = await holding(t, 'before the head')
    const client = rawClient(gateway.port, `${head('POST', '/v1/batches', JSON_TYPE, 2)}{}`)
    await until(() => read.length === 1)
    client.socket.destroy()
    const [call] = gateway.openCalls
    await until(() => call?.left === true)
    held().writeHead(500).end('{}')
    await until(() => gateway.openCalls.size === 0, 'the end of the call', 2000)
    const { billing, routing } = await gateway.entry(call?.id ?? '')
    assert.deepEqual([billing?.charged ?? null, routing?.disconnect?.ended], [null, 'upstream_failed'])
    assert.deepEqual(await gateway.books(), { spent: '0', charges: 0 })
  })

  it('does not keep the line at what makes nothing', async (t) => {
    for (const [method, path] of [
      ['DELETE', '/v1/files/file_1'],
      ['POST', '/v1/moderations'],
    ] as const) {
      const { upstream, gateway, read } = await holding(t, 'before the head')
      const client = rawClient(gateway.port, `${head(method, path, JSON_TYPE, 2)}{}`)
      await until(() => read.length === 1 || gateway.openCalls.size === 0, `${method} ${path}`)
      client.socket.destroy()
      await until(() => upstream.connections.size === 0, 'the end of the upstream', 2000)
      assert.deepEqual(await gateway.books(), { spent: '0', charges: 0 })
    }
  })
})
