import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { beforeEach, describe, it } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import express, { type Express } from 'express'
import request from 'supertest'
import { noteOperator } from '../../../lib/core/call/index.ts'
import { tagsOf } from '../../../lib/core/catalog/index.ts'
import { type CallUsage, MemoryUsageStore, type UsageStore } from '../../../lib/core/usage/index.ts'
import { usageRoutes } from '../../../lib/endpoints/usage/index.ts'
import { errorEnvelope } from '../../../lib/middleware/error-envelope/index.ts'

const NOON = Date.parse('2026-01-31T12:00:00Z')
const USAGE: CallUsage = {
  model: 'small',
  line: 'us',
  user: 'ann',
  tags: tagsOf([['team', '=1+1']]),
  requests: 1,
  refused: 0,
  failed: 0,
  durationMs: 300,
  inputTokens: 40,
  cachedInputTokens: 8,
  outputTokens: 11,
  images: 0,
  seconds: 0.5,
}

let own: Express
let all: Express

beforeEach(() => {
  const store = new MemoryUsageStore()
  const add = (account: string, at: number, members: Partial<CallUsage> = {}) =>
    store.add({ account, key: 'k', at, amount: 12_600n, cost: 5_000n, usage: { ...USAGE, ...members } })
  add('acme', NOON)
  add('acme', NOON + 3_600_000, { user: 'O"Neil, "B"', tags: tagsOf([]), failed: 1 })
  add('acme', NOON - 40 * 86_400_000)
  for (let i = 0; i < 5; i++) add('globex', NOON + i, { user: `u${i}` })
  own = express().use(usageRoutes({ store, account: () => 'acme' }), errorEnvelope())
  all = express().use(usageRoutes({ store, account: 'all' }), errorEnvelope())
})

const SPAN = 'from=2026-01-01&to=2026-02-01'

describe('usage', () => {
  it('is of the own account only, without what the calls cost the operator', async () => {
    const { body } = await request(own).get(`/usage?${SPAN}&group_by=day,user&group_by=tag:team`).expect(200)
    const figures = {
      refused: 0,
      input_tokens: 40,
      cached_input_tokens: 8,
      output_tokens: 11,
      images: 0,
      seconds: 0.5,
    }
    const times = { p50_ms: 375, p95_ms: 488 }
    const row = (user: string, team: string | null, failed: number) => ({
      day: '2026-01-31',
      user,
      'tag:team': team,
      requests: 1,
      failed,
      ...figures,
      charged: '0.0000126',
      ...times,
    })
    assert.deepEqual(body, {
      object: 'list',
      from: '2026-01-01T00:00:00.000Z',
      to: '2026-02-01T00:00:00.000Z',
      data: [row('O"Neil, "B"', null, 1), row('ann', '=1+1', 0)],
      next_cursor: null,
    })
  })

  it('is of all accounts for operators, page by page, each row once', async () => {
    const users: unknown[] = []
    let cursor = ''
    for (;;) {
      const { body } = await request(all)
        .get(`/usage?${SPAN}&group_by=account,user&limit=2${cursor}`)
        .expect(200)
      users.push(
        ...body.data.map(({ account, user, cost }: Record<string, string>) => [account, user, cost].join()),
      )
      if (body.next_cursor === null) break
      cursor = `&cursor=${body.next_cursor}`
    }
    const others = [0, 1, 2, 3, 4].map((i) => `globex,u${i},0.000005`)
    assert.deepEqual(users, ['acme,O"Neil, "B",0.000005', 'acme,ann,0.000005', ...others])
    const { body } = await request(all).get(`/usage?${SPAN}&account=globex&line=us&model=small&key=k`)
    assert.deepEqual([body.data.length, body.data[0].requests, body.data[0].charged], [1, 5, '0.000063'])
    const none = await request(all).get(`/usage?${SPAN}&tag:team=ads&group_by=account`)
    assert.deepEqual(none.body.data, [])
  })

  it('is CSV that no spreadsheet takes for formulas', async () => {
    const answer = await request(own)
      .get(`/usage?${SPAN}&format=csv&group_by=month,user,tag:team`)
      .expect(200)
    assert.match(answer.headers['content-type'] ?? '', /^text\/csv/)
    const names =
      'requests,refused,failed,input_tokens,cached_input_tokens,output_tokens,images,seconds,charged,p50_ms,p95_ms'
    assert.deepEqual(answer.text.split('\r\n'), [
      `month,user,tag:team,${names}`,
      '2026-01,"O""Neil, ""B""",,1,0,1,40,8,11,0,0.5,0.0000126,375,488',
      "2026-01,ann,'=1+1,1,0,0,40,8,11,0,0.5,0.0000126,375,488",
      '',
    ])
    const empty = await request(own).get('/usage?from=2020-01-01&to=2020-01-02&format=csv').expect(200)
    assert.equal(empty.text, `${names}\r\n`)
  })

  it('is of whole minutes in the last 48 hours, page by page, and before of whole hours', async () => {
    const store = new MemoryUsageStore()
    const minute = Math.floor(Date.now() / 60_000) * 60_000 - 5 * 60_000
    for (const at of [minute, minute + 1, minute + 60_000, minute + 120_000])
      store.add({ account: 'acme', key: 'k', at, amount: 12_600n, usage: USAGE })
    const app = express().use(usageRoutes({ store, account: () => 'acme' }), errorEnvelope())
    const iso = (time: number) => new Date(time).toISOString()
    const range = `from=${iso(minute + 20_000)}&to=${iso(minute + 60_001)}`
    const { body } = await request(app).get(`/usage?${range}`).expect(200)
    assert.deepEqual([body.from, body.to, body.data[0].requests], [iso(minute), iso(minute + 120_000), 3])
    const first = await request(app).get(`/usage?${range}&group_by=minute&limit=1`).expect(200)
    const cursor = first.body.next_cursor
    const next = await request(app).get(`/usage?${range}&group_by=minute&cursor=${cursor}`).expect(200)
    assert.deepEqual(
      [...first.body.data, ...next.body.data].map((row) => [row.minute, row.requests, row.charged]),
      [
        [iso(minute), 2, '0.0000252'],
        [iso(minute + 60_000), 1, '0.0000126'],
      ],
    )
    const lastHour = await request(app).get('/usage?group_by=minute').expect(200)
    assert.equal(lastHour.body.data.length, 3)
    assert.equal(Date.parse(lastHour.body.to) - Date.parse(lastHour.body.from), 3_600_000)
    const old = await request(app).get('/usage?from=2026-01-31T12:10:00Z&to=2026-01-31T12:20:00Z').expect(200)
    assert.deepEqual([old.body.from, old.body.to], ['2026-01-31T12:00:00.000Z', '2026-01-31T13:00:00.000Z'])
  })

  const refused: [string, string][] = [
    ['group_by=minute,hour', 'group_by'],
    ['group_by=minute&from=2026-01-31', 'from'],
    ['group_by=minute&to=2026-01-31', 'to'],
    ['group_by=line', 'group_by'],
    ['group_by=account', 'group_by'],
    ['group_by=day,month', 'group_by'],
    ['group_by=user,user', 'group_by'],
    ['group_by=tag:', 'group_by'],
    ['group_by=tag:a"b', 'group_by'],
    ['group_by=', 'group_by'],
    ['account=globex', 'account'],
    ['line=us', 'line'],
    ['group_by=hour&from=2025-01-01&to=2026-01-01', 'from'],
    ['from=1900-01-01', 'from'],
    ['from=2026-02-01&to=2026-01-01', 'from'],
    ['to=yesterday', 'to'],
    ['format=xml', 'format'],
    ['limit=1001', 'limit'],
    ['limit=0', 'limit'],
    ['cursor=x', 'cursor'],
    ['group_by=user&cursor=WzFd', 'cursor'],
    ['tag:a=', 'tag:a'],
    ['color=red', 'color'],
  ]
  for (const [query, param] of refused)
    it(`refuses ${query}`, async () => {
      const { body } = await request(own).get(`/usage?${query}`).expect(400)
      assert.deepEqual([body.error.code, body.error.param], ['invalid_request', param])
    })

  it('reads one request of an account at a time, beside other accounts, and none that no caller waits for', async (t) => {
    const begun: [account: string | undefined, end: () => void][] = []
    const store: UsageStore = {
      read: ({ account }) => new Promise((resolve) => begun.push([account, () => resolve([])])),
    }
    const account = (req: { get(name: string): string | undefined }) => req.get('x-account')
    const app = express().use(usageRoutes({ store, account }), errorEnvelope())
    const server = app.listen(0, '127.0.0.1')
    t.after(() => {
      server.closeAllConnections()
      server.close()
    })
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const arrived = (): Promise<unknown> => once(server, 'request')
    const get = async (of: string, signal?: AbortSignal) => {
      const seen = arrived()
      const headers = { 'x-account': of }
      const answer = fetch(`http://127.0.0.1:${port}/usage`, { headers, ...(signal && { signal }) })
      answer.catch(() => {})
      await seen
      return { status: () => answer.then((response) => response.status) }
    }
    const until = async (condition: () => boolean) => {
      while (!condition()) await setTimeout(2)
    }
    const leaving = new AbortController()
    const first = await get('acme')
    const gone = await get('acme', leaving.signal)
    const others = []
    for (let i = 0; i < 15; i++) others.push(await get('acme'))
    const beside = await get('globex')
    await until(() => begun.length === 2)
    assert.deepEqual(
      begun.map(([of]) => of),
      ['acme', 'globex'],
    )
    assert.equal(await (await get('acme')).status(), 429)
    leaving.abort()
    await assert.rejects(gone.status())
    // The place of the one that left is free again, and none that came behind it is lost.
    let last = await get('acme')
    while ((await Promise.race([last.status(), setTimeout(50, 0)])) === 429) last = await get('acme')
    begun[1]?.[1]()
    for (let i = 0; i < 18; i += i === 0 ? 2 : 1) {
      await until(() => begun.length > i)
      await setTimeout(1)
      assert.equal(begun.length, Math.max(2, i + 1))
      begun[i]?.[1]()
    }
    const statuses = await Promise.all([first, beside, ...others, last].map((one) => one.status()))
    assert.deepEqual(new Set(statuses), new Set([200]))
    assert.equal(begun.length, 18)
  })

  it('reads for an operator while a long report of another is read', async () => {
    const reading: (() => void)[] = []
    const store: UsageStore = {
      read: ({ key }) =>
        key === 'long' ? new Promise((end) => reading.push(() => end([]))) : Promise.resolve([]),
    }
    const app = express()
      .use((req, _res, next) => {
        noteOperator(req, { name: req.get('x-operator') ?? null, roles: ['viewer'] })
        next()
      })
      .use(usageRoutes({ store, account: 'all' }), errorEnvelope())
    const of = (name: string, query = '') => request(app).get(`/usage${query}`).set('x-operator', name)
    const long = of('ann', '?key=long').then(({ status }) => status)
    while (reading.length === 0) await setTimeout(2)
    await of('ben').expect(200)
    reading[0]?.()
    assert.equal(await long, 200)
  })
})
