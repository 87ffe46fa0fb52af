import assert from 'node:assert/strict'
import { beforeEach, describe, it } from 'node:test'
import express, { type Express } from 'express'
import request from 'supertest'
import { newRequestId } from '../../../lib/core/call/index.ts'
import { callLogRoutes } from '../../../lib/endpoints/calls/index.ts'
import { type CallLogEntry, MemoryCallStore } from '../../../lib/middleware/call-log/index.ts'
import { errorEnvelope } from '../../../lib/middleware/error-envelope/index.ts'
import { entryAt } from '../../contracts/call-store.ts'

const NOON = Date.parse('2026-01-31T12:00:00Z')

let store: MemoryCallStore
let app: Express
/** Of one account, newest first: one a minute back from noon. */
let own: CallLogEntry[]

beforeEach(async () => {
  own = Array.from({ length: 45 }, (_, i) =>
    entryAt(NOON - i * 60_000, {
      model: i % 2 ? 'chat-large' : 'chat-small',
      ...(i % 3 === 0 && { status: 429, error_code: 'rate_limited' as const }),
    }),
  )
  store = new MemoryCallStore()
  const others = own.map((entry) => entryAt(Date.parse(entry.created_at), { account: 'globex' }))
  await store.append([...own, ...others])
  app = express().use(callLogRoutes({ store, account: () => 'acme' }), errorEnvelope())
})

async function list(
  query: string,
): Promise<{ object: string; data: CallLogEntry[]; next_cursor: string | null }> {
  return (await request(app).get(`/calls?${query}`).expect(200)).body
}

describe('a list of calls', () => {
  it('is the newest twenty of the own account, and goes on behind its cursor to the end', async () => {
    const first = await list('')
    assert.equal(first.object, 'list')
    assert.deepEqual(first.data, own.slice(0, 20))
    const second = await list(`cursor=${first.next_cursor}`)
    assert.deepEqual(second.data, own.slice(20, 40))
    const third = await list(`cursor=${second.next_cursor}`)
    assert.deepEqual([third.data, third.next_cursor], [own.slice(40), null])
  })

  it('has no costs for callers, only for operators', async () => {
    const billing = {
      currency: 'USD',
      reserved: '2',
      charged: '1',
      cost: '0.5',
      required: null,
      available: null,
      items: [],
    }
    const billed = entryAt(NOON + 1, { billing })
    await store.append([billed])
    const { cost: _, ...shown } = billing
    assert.deepEqual((await list('limit=1')).data[0]?.billing, shown)
    assert.deepEqual((await request(app).get(`/calls/${billed.id}`)).body.billing, shown)
    const operators = express().use(callLogRoutes({ store, account: 'all' }), errorEnvelope())
    assert.deepEqual((await request(operators).get(`/calls/${billed.id}`)).body.billing, billing)
    assert.deepEqual((await request(operators).get('/calls?limit=1')).body.data[0].billing, billing)
  })

  it('has no cursor when the last page is exactly full', async () => {
    const page = await list('limit=45')
    assert.deepEqual([page.data.length, page.next_cursor], [45, null])
  })

  it('is narrowed by the request id of the caller, within its own account', async () => {
    const id = 'order 17/b'
    const mine = entryAt(NOON + 1, { client_request_id: id })
    await store.append([mine, entryAt(NOON + 2, { client_request_id: id, account: 'globex' })])
    assert.deepEqual((await list(`client_request_id=${encodeURIComponent(id)}`)).data, [mine])
    assert.deepEqual((await list('client_request_id=order')).data, [])
  })

  it('is narrowed by model, status, code and time', async () => {
    assert.deepEqual(
      (await list('model=chat-large&limit=100')).data,
      own.filter(({ model }) => model === 'chat-large'),
    )
    assert.deepEqual(
      (await list('status=200&limit=100')).data,
      own.filter(({ status }) => status === 200),
    )
    assert.deepEqual(
      (await list('code=rate_limited&limit=100')).data,
      own.filter(({ status }) => status === 429),
    )
    const hour = await list('from=2026-01-31T11:50:00Z&to=2026-01-31T13:00:00%2B01:00')
    assert.deepEqual(hour.data, own.slice(1, 11), 'from is in, to is not')
    assert.equal((await list('from=2026-01-31&limit=100')).data.length, 45)
    assert.deepEqual(await list('from=2026-02-01'), { object: 'list', data: [], next_cursor: null })
  })

  it('is of the own account with any cursor', async () => {
    const foreign = Buffer.from(newRequestId(NOON + 1)).toString('base64url')
    assert.deepEqual((await list(`cursor=${foreign}&limit=100`)).data, own)
  })

  const cursorOf = (text: string) => Buffer.from(text).toString('base64url')
  for (const [param, value] of [
    ['limit', '0'],
    ['limit', '101'],
    ['limit', '-1'],
    ['limit', '1e2'],
    ['limit', ''],
    ['status', '99'],
    ['status', '200 or 1=1'],
    ['code', 'no_such_code'],
    ['code', '__proto__'],
    ['client_request_id', ''],
    ['client_request_id', 'x'.repeat(201)],
    ['from', 'yesterday'],
    ['from', '1700000000000'],
    ['to', '2026-13-01T00:00:00Z'],
    ['cursor', ''],
    ['cursor', 'forged'],
    ['cursor', cursorOf('req_1')],
    ['cursor', `${cursorOf(newRequestId())}=`],
    ['model', 'x'.repeat(201)],
  ] as const) {
    it(`refuses ${param}=${value.slice(0, 40)}`, async (t) => {
      const asked = t.mock.method(store, 'list')
      const { status, body } = await request(app)
        .get('/calls')
        .query({ [param]: value })
      assert.deepEqual([status, body.error.code, body.error.param], [400, 'invalid_request', param])
      assert.equal(asked.mock.callCount(), 0)
    })
  }

  for (const param of ['model', 'status', 'code', 'client_request_id', 'from', 'to', 'limit', 'cursor']) {
    it(`refuses ${param} given twice`, async () => {
      const { body } = await request(app).get(`/calls?${param}=1&${param}=2`).expect(400)
      assert.equal(body.error.param, param)
      assert.doesNotMatch(body.error.message, /undefined|expected/i)
    })
  }
})
