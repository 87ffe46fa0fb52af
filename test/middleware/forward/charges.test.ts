import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { OpenCall } from '../../../lib/core/call/index.ts'
import { FREE } from '../../../lib/core/catalog/index.ts'
import { GatewayError } from '../../../lib/core/errors/index.ts'
import { MemoryLedger } from '../../../lib/ledger/index.ts'
import { settleAtPrice } from '../../../lib/middleware/forward/charges.ts'
import { LateLedger } from '../../ledger/support/late-ledger.ts'
import { envelopeOf } from '../../support/answer-bodies.ts'
import { rawClient } from '../../support/app-server.ts'
import { byteUpstream } from '../../support/byte-upstream.ts'
import { forwardGateway } from '../../support/forward-gateway.ts'
import { KEY } from '../../support/gateway.ts'
import { until } from '../../support/until.ts'

const ACCOUNTS = { accounts: [{ id: 'acme', balance: '10' }], keys: [{ id: 'key_acme' }] }

describe('the charge of a pass-through', () => {
  it('is durable before the head of the answer goes out', async (t) => {
    const upstream = await byteUpstream(t, (_req, res) => void res.end('the file'))
    const ledger = new LateLedger(ACCOUNTS)
    const gateway = await forwardGateway(t, { lines: [upstream.url], ledger })
    const client = rawClient(
      gateway.port,
      `GET /v1/files/f1/content HTTP/1.1\r\nhost: x\r\nconnection: close\r\nauthorization: Bearer ${KEY}\r\n\r\n`,
    )
    await until(() => ledger.held === 1)
    await new Promise((resolve) => setTimeout(resolve, 50))
    assert.equal(client.received, '', 'not even a head')
    ledger.open()
    assert.match(await client.end(), /the file/)
    const { billing } = await gateway.entry(/x-request-id: (\S+)/i.exec(client.received)?.[1] ?? '')
    assert.equal(billing?.charged, '0.01')
    assert.deepEqual(billing?.items, [{ unit: 'request', quantity: 1, price: '0.01' }])
  })

  it('stands if the line breaks off before it is durable: its head goes out, and the answer is cut off', async (t) => {
    const upstream = await byteUpstream(t, (_req, res) => {
      res.writeHead(200, { 'content-type': 'audio/wav', 'content-length': 100 })
      res.write('the first half')
    })
    const ledger = new LateLedger(ACCOUNTS)
    const gateway = await forwardGateway(t, { lines: [upstream.url], ledger })
    const client = rawClient(
      gateway.port,
      `GET /v1/files/f1/content HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${KEY}\r\n\r\n`,
    )
    await until(() => ledger.held === 1)
    for (const socket of upstream.connections) socket.destroy()
    await until(() => upstream.connections.size === 0)
    await new Promise((resolve) => setTimeout(resolve, 50))
    ledger.open()
    const received = await client.end()
    assert.match(received, /^HTTP\/1\.1 200 OK\r\n/)
    assert.doesNotMatch(received, /upstream_error/)
    const { status, outcome, error_code, billing } = await gateway.entry(
      /x-request-id: (\S+)/i.exec(received)?.[1] ?? '',
    )
    assert.deepEqual([status, outcome, error_code], [200, 'interrupted', 'upstream_error'])
    assert.equal(billing?.charged, '0.01')
    assert.equal((await gateway.books()).spent, '0.01')
  })

  it('that cannot be confirmed in time is an error instead of the answer, and is undone', async (t) => {
    const upstream = await byteUpstream(t, (_req, res) => void res.end('the file'))
    const ledger = new LateLedger(ACCOUNTS)
    const gateway = await forwardGateway(t, { lines: [upstream.url], ledger })
    const response = await gateway.ask('/v1/files/f1/content')
    assert.equal(response.status, 503)
    assert.equal((await envelopeOf(response)).error.code, 'billing_unavailable')
    assert.equal(upstream.connections.size, 0, 'the upstream is closed')
    ledger.open()
    assert.equal((await gateway.books()).spent, '0')
  })

  it('is refused where the balance is too low: the line is not asked', async (t) => {
    const upstream = await byteUpstream(t, (_req, res) => void res.end())
    const ledger = new MemoryLedger({
      accounts: [{ id: 'acme', balance: '0.001' }],
      keys: [{ id: 'key_acme' }],
    })
    const gateway = await forwardGateway(t, { lines: [upstream.url], ledger })
    const response = await gateway.ask('/v1/files')
    assert.equal(response.status, 402)
    assert.equal((await envelopeOf(response)).error.code, 'insufficient_balance')
    assert.equal(upstream.requests.length, 0)
  })

  for (const [status, charged] of [
    [200, '0.01'],
    [204, '0.01'],
    [302, null],
    [304, null],
    [416, null],
    [400, null],
    [404, null],
    [429, null],
    [500, null],
  ] as const)
    it(`is ${charged ?? 'nothing'} where the line answers ${status}`, async (t) => {
      const upstream = await byteUpstream(t, (_req, res) => void res.writeHead(status).end())
      const gateway = await forwardGateway(t, { lines: [upstream.url] })
      const response = await gateway.ask('/v1/files')
      await response.arrayBuffer()
      const { billing } = await gateway.entry(response.headers.get('x-request-id'))
      assert.equal(billing?.charged ?? null, charged)
      assert.deepEqual(await gateway.books(), { spent: charged ?? '0', charges: charged ? 1 : 0 })
    })

  it('is nothing where the rule names no price', async (t) => {
    const upstream = await byteUpstream(t, (_req, res) => void res.end('free'))
    const rules = [{ path: '/v1/files', lines: ['line-0'] }]
    const gateway = await forwardGateway(t, { lines: [upstream.url], rules })
    const response = await gateway.ask('/v1/files')
    assert.equal(await response.text(), 'free')
    assert.equal((await gateway.entry(response.headers.get('x-request-id'))).billing?.charged, '0')
    assert.deepEqual(await gateway.books(), { spent: '0', charges: 0 })
  })
})

describe('the limits of a pass-through', () => {
  it('count its requests, and hold a slot while it runs', async (t) => {
    const release = Promise.withResolvers<void>()
    const upstream = await byteUpstream(t, async (_req, res) => {
      res.write('first')
      await release.promise
      res.end('last')
    })
    const gateway = await forwardGateway(t, {
      lines: [upstream.url],
      account: { limits: { concurrency: 1, rpm: 3 } },
    })
    const first = await gateway.ask('/v1/files/a')
    const second = await gateway.ask('/v1/files/b')
    assert.equal((await envelopeOf(second)).error.code, 'concurrency_limited')
    release.resolve()
    assert.equal(await first.text(), 'firstlast')
    assert.equal((await gateway.ask('/v1/files/c')).status, 200)
    assert.equal((await gateway.ask('/v1/files/d')).status, 200)
    assert.equal((await envelopeOf(await gateway.ask('/v1/files/e'))).error.code, 'rate_limited')
    assert.equal(upstream.requests.length, 3)
  })
})

const OUTCOME = { status: 200, errorCode: null, finish: 'completed' } as const
const UNUSED = {
  inputTokens: 0,
  cachedInputTokens: 0,
  cacheWriteTokens: 0,
  outputTokens: 0,
  source: 'measured',
} as const

/** A call, and what is noted of it by the time that it is settled. */
function settling(entryBy: OpenCall['entryBy'], settled: () => Promise<void> = async () => {}) {
  const log: unknown[] = []
  const call = {
    usage: null,
    servedBy: null,
    entryBy,
    async settle(settlement: unknown) {
      log.push([settlement, call.usage, call.servedBy, call.entryBy])
      await settled()
    },
    assertOwnsClaim: () => void log.push('proved'),
  }
  return { call: call as unknown as OpenCall, log }
}

describe('a success that is charged at the price of its rule', () => {
  it('has used nothing but its first minute, if minutes have a price', async () => {
    for (const [perMinute, usage] of [
      [0n, UNUSED],
      [1n, { ...UNUSED, minutes: 1 }],
    ] as const) {
      const servedBy = { line: 'l', price: { ...FREE, perMinute }, cost: undefined }
      const { call, log } = settling(null)
      await settleAtPrice(call, servedBy, OUTCOME)
      assert.deepEqual(log, [[{ outcome: OUTCOME, unsent: null }, usage, servedBy, null], 'proved'])
    }
  })

  it('leaves its log entry to the end of the call, which the charge does not know', async () => {
    for (const [before, after] of [
      ['ledger', 'writer'],
      ['writer', 'writer'],
      ['written', 'written'],
      [null, null],
    ] as const) {
      const { call, log } = settling(before)
      await settleAtPrice(call, { line: 'l', price: FREE, cost: undefined }, OUTCOME)
      assert.equal((log[0] as unknown[])[3], after)
    }
  })

  it('proves nothing where it cannot be charged', async () => {
    const refusal = new GatewayError('billing_unavailable')
    const { call, log } = settling(null, () => Promise.reject(refusal))
    await assert.rejects(settleAtPrice(call, { line: 'l', price: FREE, cost: undefined }, OUTCOME), refusal)
    assert.equal(log.length, 1)
  })
})
