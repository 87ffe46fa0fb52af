import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { describe, it, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { rawClient } from '../support/app-server.ts'
import { bytesOf, byteUpstream } from '../support/byte-upstream.ts'
import { KEY } from '../support/gateway.ts'
import { until, untilAsync } from '../support/until.ts'
import { PRICE, twoTenants } from './two-tenants.ts'

const COLLECTIONS = [
  'batches',
  'conversations',
  'evals',
  'files',
  'fine_tuning/jobs',
  'threads',
  'uploads',
  'vector_stores',
]

/** Requests for work on what the account has: the collection, the method, what is below the thing, and the body. */
const WORK = [
  ['threads', 'POST', '/runs', '{"assistant_id":null}'],
  ['threads', 'POST', '/runs', '{"stream":true}'],
  ['threads', 'POST', '', '{"metadata":{}}'],
  ['threads', 'DELETE', '', ''],
  ['threads', 'POST', '/messages', '{"role":"user","content":"hello"}'],
  ['vector_stores', 'POST', '/search', '{"query":"words"}'],
  ['vector_stores', 'PATCH', '', '{"name":"n"}'],
  ['vector_stores', 'PUT', '', '{"name":"n"}'],
  ['conversations', 'POST', '/items', '{"items":[]}'],
  ['conversations', 'DELETE', '/items/item_1', ''],
  ['files', 'DELETE', '', ''],
  ['batches', 'POST', '/cancel', ''],
  ['fine_tuning/jobs', 'POST', '/pause', '{}'],
  ['evals', 'POST', '/runs', '{"data_source":{"source":{"type":"file_content"}}}'],
  ['uploads', 'POST', '/complete', '{"part_ids":[]}'],
] as const

const MOMENTS = ['before the head', 'behind the head', 'within the body'] as const
type Moment = (typeof MOMENTS)[number]

function headOf(method: string, path: string, length: number): string {
  const framing = length > 0 ? `content-type: application/json\r\ncontent-length: ${length}\r\n` : ''
  return `${method} ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${KEY}\r\n${framing}\r\n`
}

/** A gateway, and a line that makes what it is asked for, and holds back its answers to what else it has whole. */
async function tenants(t: TestContext) {
  let made = 0
  const done: { line: string; res: ServerResponse }[] = []
  let begun = 0
  const upstream = await byteUpstream(t, async (req, res) => {
    begun++
    const body = await bytesOf(req).catch(() => undefined)
    if (!body) return
    const path = (req.url ?? '').replace('/v1/', '')
    const json = { 'content-type': 'application/json' }
    if (COLLECTIONS.includes(path)) res.writeHead(200, json).end(`{"id":"thing_${++made}"}`)
    else done.push({ line: `${req.method} ${path} ${body}`, res })
  })
  const gateway = await twoTenants(t, { upstream: upstream.url, paths: COLLECTIONS })
  const make = async (collection: string): Promise<string> => {
    const type = collection === 'files' ? 'application/octet-stream' : 'application/json'
    const init = { method: 'POST', body: '{}', headers: { 'content-type': type } }
    const answer = await gateway.send(`/v1/${collection}`, undefined, init)
    assert.equal(answer.status, 200, collection)
    return ((await answer.json()) as { id: string }).id
  }
  return { upstream, gateway, done, make, begun: () => begun }
}

const hundredths = async (balance: Promise<unknown>) => Math.round(100 * (100 - Number(await balance)))

function begin({ res }: { res: ServerResponse }, moment: Moment): void {
  if (moment === 'before the head') return
  res.writeHead(200, { 'content-type': 'application/json' }).flushHeaders()
  if (moment === 'within the body') res.write('{"id":')
}

function end({ res }: { res: ServerResponse }, moment: Moment): void {
  if (moment === 'before the head') res.writeHead(200, { 'content-type': 'application/json' })
  res.end(moment === 'within the body' ? '"x"}' : '{"id":"x"}')
}

describe('a caller that leaves after the line has its whole request', () => {
  for (const moment of MOMENTS)
    it(`pays for it once, for any kind of work: ${moment}`, async (t) => {
      const { gateway, done, make } = await tenants(t)
      let charged = 0
      for (const [collection, method, below, body] of WORK) {
        const id = await make(collection)
        const path = `/v1/${collection}/${id}${below}`
        const client = rawClient(gateway.port, headOf(method, path, body.length) + body)
        await until(() => done.length === 1, `the line has the whole of ${method} ${path}`)
        const [held] = done.splice(0)
        assert.ok(held)
        begin(held, moment)
        client.socket.resetAndDestroy()
        await sleep(20)
        end(held, moment)
        charged += 2
        const what = `${method} ${path} is charged`
        await untilAsync(async () => (await hundredths(gateway.balanceOf('acme'))) === charged, what, 5000)
        // A read of what was deleted does not reach the line.
        if (method !== 'DELETE' || below !== '') continue
        assert.equal((await gateway.send(`/v1/${collection}/${id}`)).status, 404)
      }
      const check = await gateway.admin('/admin/ledger/check')
      assert.deepEqual(check.violations, [])
      assert.equal(await hundredths(gateway.balanceOf('globex')), 0)
      assert.equal(done.length, 0, 'each was sent once')
    })

  it('pays nothing if the line fails, or does not find the resource', async (t) => {
    const { gateway, done, make } = await tenants(t)
    const id = await make('threads')
    const statuses = [400, 404, 500, 429]
    for (const status of statuses) {
      const body = '{}'
      const client = rawClient(gateway.port, headOf('POST', `/v1/threads/${id}/runs`, 2) + body)
      await until(() => done.length === 1)
      const [held] = done.splice(0)
      client.socket.resetAndDestroy()
      await sleep(20)
      held?.res.writeHead(status, { 'retry-after': '0' }).end('{}')
      const entries = async () => {
        const { data } = (await (await gateway.send('/v1/calls')).json()) as { data: { path: string }[] }
        return data.filter(({ path }) => path.endsWith('/runs')).length
      }
      const ended = statuses.indexOf(status) + 1
      await untilAsync(async () => (await entries()) === ended, `the end of the call with ${status}`, 5000)
    }
    assert.equal(await hundredths(gateway.balanceOf('acme')), 1)
  })
})

describe('a caller that leaves before the line has its whole request', () => {
  it('pays nothing, and the line receives no more of it', async (t) => {
    const { gateway, upstream, done, make } = await tenants(t)
    let charged = 0
    for (const [collection, method, below, body] of WORK) {
      if (body === '') continue
      const id = await make(collection)
      charged++
      const head = headOf(method, `/v1/${collection}/${id}${below}`, body.length)
      for (const part of [0, 1, body.length - 1]) {
        const client = rawClient(gateway.port, head + body.slice(0, part))
        await sleep(5)
        client.socket.resetAndDestroy()
      }
    }
    await until(() => upstream.connections.size === 0, 'the end of the upstream', 5000)
    assert.deepEqual(done, [])
    assert.equal(await hundredths(gateway.balanceOf('acme')), charged)
  })

  it('at any moment pays exactly for the requests that the line has whole', async (t) => {
    const { gateway, upstream, done, make } = await tenants(t)
    const id = await make('vector_stores')
    const large = `{"file_ids":[],"note":"${'x'.repeat(300_000)}"}`
    const head = headOf('POST', `/v1/vector_stores/${id}/file_batches`, large.length)
    let whole = 0
    const answer = (): void => {
      for (const held of done.splice(0)) {
        whole++
        end(held, 'before the head')
      }
    }
    const PIECES = 6
    for (let round = 0; round < 42; round++) {
      const client = rawClient(gateway.port, head)
      const size = large.length / PIECES
      const pieces = round % (PIECES + 1)
      for (let i = 0; i < pieces; i++) {
        client.socket.write(large.slice(Math.round(i * size), Math.round((i + 1) * size)))
        if (round % 2 === 0) await sleep(1)
      }
      await sleep(round % 5)
      client.socket.resetAndDestroy()
      answer()
    }
    const settled = async () => {
      answer()
      const charged = await hundredths(gateway.balanceOf('acme'))
      return upstream.connections.size === 0 && charged === whole + 1
    }
    await untilAsync(settled, 'exactly what came whole is charged', 5000)
    await sleep(100)
    assert.equal(await hundredths(gateway.balanceOf('acme')), whole + 1)
    assert.ok(whole > 0 && whole < 42, `${whole} of 42 came whole`)
  })
})

describe('a caller that waits for its answer', () => {
  it('pays the same price', async (t) => {
    const { gateway, done, make } = await tenants(t)
    const id = await make('threads')
    const asked = gateway.send(`/v1/threads/${id}/runs`, {})
    await until(() => done.length === 1)
    for (const held of done) end(held, 'before the head')
    const answer = await asked
    await answer.text()
    assert.equal((await gateway.entryOf(answer)).billing?.charged, PRICE)
    assert.equal(await hundredths(gateway.balanceOf('acme')), 2)
  })

  it('finds no resource of another tenant, which is not charged either', async (t) => {
    const { gateway, done, make } = await tenants(t)
    const id = await make('threads')
    assert.equal((await gateway.sendOther(`/v1/threads/${id}/runs`, {})).status, 404)
    assert.deepEqual(done, [])
    assert.equal(await hundredths(gateway.balanceOf('globex')), 0)
  })
})
