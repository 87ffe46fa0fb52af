import assert from 'node:assert/strict'
import type { AddressInfo } from 'node:net'
import { type TestContext, test } from 'node:test'
import { loadConfig } from '../../lib/core/config/index.ts'
import { Budgets, LeasePool } from '../../lib/ledger/index.ts'
import { billingGuard } from '../../lib/middleware/billing-guard/index.ts'
import { errorEnvelope } from '../../lib/middleware/error-envelope/index.ts'
import { idempotency } from '../../lib/middleware/idempotency/index.ts'
import { type RateLimitOptions, rateLimit } from '../../lib/middleware/rate-limit/index.ts'
import { readRequest } from '../../lib/middleware/read-request/index.ts'
import { route } from '../../lib/middleware/route/index.ts'
import { openDatabase, SqlBudgetStore, SqlLedger, seedAccountsAndKeys } from '../../lib/stores/sql/index.ts'
import { charge } from '../contracts/ledger-money.ts'
import { rawClient } from '../support/app-server.ts'
import { serveChain } from '../support/chain-server.ts'
import { chatBody, KEY } from '../support/gateway.ts'
import { chatAnswer, startUpstream, type UpstreamScript } from '../support/scripted-upstream.ts'

const PATH = '/v1/chat/completions'
const LARGE = { note: 'x'.repeat(20_000) }

/** A gateway with the given limits of the key's account. */
async function startGateway(
  t: TestContext,
  options: {
    limits?: object
    price?: object
    balance?: string
    script?: UpstreamScript
    rateLimit?: RateLimitOptions
  },
) {
  const upstream = await startUpstream(options.script)
  t.after(() => upstream.close())
  const db = await openDatabase('sqlite::memory:')
  await seedAccountsAndKeys(db, {
    accounts: [{ id: 'acme', balance: options.balance ?? '1' }],
    keys: [{ id: 'key_acme', account: 'acme', secret: KEY }],
  })
  const ledger = new SqlLedger(db)
  const pool = new LeasePool({ ledger })
  t.after(() => pool.close())
  const budgetStore = new SqlBudgetStore(db)
  const budgets = new Budgets({ store: budgetStore })
  t.after(() => budgets.close())
  const config = loadConfig({
    accounts: [{ id: 'acme', limits: options.limits ?? {} }],
    keys: [{ id: 'key_acme', account: 'acme', secret: KEY }],
    models: [{ id: 'chat', kind: 'chat', price: options.price ?? { inputPerMillion: '1' } }],
    lines: [
      { id: 'l', provider: 'p', protocol: 'openai', baseUrl: `${upstream.url}/v1`, models: { chat: 'u' } },
    ],
  })
  const { catalog } = config
  const chain = await serveChain(config, (app, { lines }) => {
    const limit = rateLimit(options.rateLimit)
    const bill = billingGuard({ pool, catalog, budgets })
    const read = readRequest({ catalog, before: [limit, bill] })
    app.post([PATH, '/v1/messages/count_tokens'], read, idempotency(), limit, bill, route({ catalog, lines }))
    app.use(errorEnvelope())
  })
  t.after(() => chain.close())
  t.after(() => db.destroy())
  const { port } = chain.server.address() as AddressInfo
  const post = async (extra: Record<string, unknown> = {}, tags = '', more: Record<string, string> = {}) => {
    const response = await fetch(chain.url + PATH, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${KEY}`,
        'content-type': 'application/json',
        'x-gateway-tags': tags,
        ...more,
      },
      body: JSON.stringify(chatBody(extra)),
    })
    return { status: response.status, headers: response.headers, text: await response.text() }
  }
  /** Announces a body, sends its first byte and waits for the answer. */
  const announce = async (length: string, tags = '') => {
    const client = rawClient(
      port,
      `POST ${PATH} HTTP/1.1\r\nhost: x\r\nx-gateway-tags: ${tags}\r\nauthorization: Bearer ${KEY}\r\ncontent-type: application/json\r\n${length}\r\n\r\n`,
    )
    await client.until('\r\n\r\n{"')
    const answer = client.received
    client.socket.destroy()
    return answer
  }
  return { upstream, ledger, budgetStore, budgets, post, announce, ...chain }
}

const LENGTHS = ['content-length: 20000000', 'content-length: 16385', 'transfer-encoding: chunked']

test('a used-up window refuses a large body unread, like a small one, and counts nothing', async (t) => {
  const { post, announce, upstream } = await startGateway(t, { limits: { rpm: 1 } })
  assert.equal((await post(LARGE)).status, 200)
  const small = await post()
  for (const length of LENGTHS) {
    const answer = await announce(length)
    assert.match(answer, /^HTTP\/1\.1 429 /)
    assert.match(answer, /"code":"rate_limited"/)
    // A short rest is read and thrown away: that is cheaper than a new connection.
    assert.match(answer, length.endsWith('16385') ? /connection: keep-alive/i : /connection: close/i)
    assert.match(answer, /retry-after: [1-9]/i)
    for (const name of ['x-ratelimit-limit-requests', 'x-ratelimit-remaining-requests', 'x-should-retry'])
      assert.match(answer, new RegExp(`${name}: ${small.headers.get(name)}\r\n`, 'i'))
  }
  assert.equal((await post(LARGE)).status, 429)
  assert.equal(upstream.requests.length, 1)
})

for (const later of [false, true])
  test(`limits of the app’s own refuse a large body unread, except for calls that they skip${later ? ', by promises' : ''}`, async (t) => {
    const told = <T>(value: T): T | Promise<T> => (later ? Promise.resolve(value) : value)
    const { post, announce } = await startGateway(t, {
      rateLimit: {
        skip: (req) => told(req.get('x-gateway-tags') === 'team=ours'),
        levels: [{ name: 'team', by: (req) => told(req.get('x-gateway-tags') || null), rpm: 1 }],
      },
    })
    for (const tags of ['team=ads', 'team=ours']) assert.equal((await post({}, tags)).status, 200)
    for (const length of LENGTHS) assert.match(await announce(length, 'team=ads'), /"code":"rate_limited"/)
    assert.equal((await post(LARGE, 'team=ads')).status, 429)
    for (const tags of ['team=ours', 'team=search', '', ''])
      assert.equal((await post(LARGE, tags)).status, 200)
  })

test('occupied slots refuse a large body unread, and refusals do not change the window', async (t) => {
  const running = Promise.withResolvers<void>()
  const { post, announce, upstream } = await startGateway(t, {
    limits: { rpm: 3, concurrency: 1 },
    script: async (res) => {
      await running.promise
      chatAnswer(res)
    },
  })
  const first = post()
  while (upstream.requests.length === 0) await new Promise(setImmediate)
  for (const length of [...LENGTHS, ...LENGTHS]) {
    const answer = await announce(length)
    assert.match(answer, /"code":"concurrency_limited"/)
    assert.match(answer, /x-ratelimit-remaining-requests: 2/i)
  }
  running.resolve()
  assert.equal((await first).status, 200)
  assert.deepEqual(
    [(await post(LARGE)).status, (await post(LARGE)).status, (await post(LARGE)).status],
    [200, 200, 429],
  )
})

test('a balance known to be spent refuses a large body unread until a deposit, which takes effect at once', async (t) => {
  const { post, announce, ledger, entry } = await startGateway(t, { balance: '0' })
  const small = await post()
  assert.equal(small.status, 402)
  for (const length of LENGTHS) assert.match(await announce(length), /"code":"insufficient_balance"/)
  const refused = await post(LARGE)
  assert.equal(refused.status, 402)
  assert.equal((await entry(refused.headers.get('x-request-id'))).error_code, 'insufficient_balance')
  await ledger.deposit('acme', 1_000_000_000n, 'more', Date.now())
  assert.equal((await post(LARGE)).status, 200)
})

test('a budget known to be spent refuses large bodies of its calls unread, until it is raised', async (t) => {
  const { post, announce, ledger, budgetStore, budgets, entry } = await startGateway(t, {})
  const scope = { account: 'acme', key: null, user: null, tag: 'team=search' }
  const terms = { amount: 1n, hard: true, soft: [] }
  const origin = { requestId: 'req_1', actor: 'admin', at: Date.now() }
  const when = { period: 'month', timezone: 'UTC', createdAt: 1 } as const
  await budgetStore.create({ id: 'b1', scope, ...when, ...terms }, origin)
  await budgets.refresh()
  // Not empty, but too little: whether it is enough is known by the body only.
  for (const body of [{}, LARGE]) assert.equal((await post(body, 'team=search')).status, 402)
  const call = { account: 'acme', key: null, user: null, tags: { team: 'search' } }
  const wallets = budgets.matching(call, Date.now()).map(({ wallet }) => wallet)
  await ledger.settle([charge('acme', 1n, { budgets: wallets })])
  const refused = await post({}, 'team=search')
  assert.equal(refused.status, 402)
  assert.match(
    refused.text,
    /The budget of the tag \\"team=search\\" does not cover this call\. It resets at /,
  )
  assert.equal((await entry(refused.headers.get('x-request-id'))).billing?.budget, 'b1')
  for (const length of LENGTHS) {
    const answer = await announce(length, 'team=search')
    assert.match(answer, /^HTTP\/1\.1 402 [\s\S]*"code":"key_quota_exhausted"/)
  }
  for (const tags of ['team=ads', '']) assert.equal((await post(LARGE, tags)).status, 200)
  const raised = { ...origin, requestId: 'req_2' }
  await budgetStore.change('b1', (now) => ({ ...now, amount: 200_000_000n }), raised)
  assert.equal((await post(LARGE, 'team=search')).status, 200)
})

test('a repeated call is refused for its key, like one with a small body, with any limits and money left', async (t) => {
  const body = { ...LARGE, max_tokens: 1 }
  const key = { 'idempotency-key': 'once' }
  const spent = [{ limits: { rpm: 1 } }, { price: { perRequest: '1' }, balance: '1' }]
  for (const options of spent) {
    const { post, upstream } = await startGateway(t, options)
    assert.equal((await post(body, '', key)).status, 200)
    assert.ok([402, 429].includes((await post(LARGE)).status))
    const repeated = await post(body, '', key)
    assert.match(repeated.text, /"code":"idempotency_key_replayed"/)
    assert.ok([402, 429].includes((await post(body, '', { 'idempotency-key': 'other' })).status))
    assert.equal(upstream.requests.length, 1)
  }
})

test('a request that may be free is read, with any balance', async (t) => {
  const { post } = await startGateway(t, { balance: '0', price: { outputPerMillion: '1' } })
  assert.equal((await post(LARGE)).status, 402)
  const free = await startGateway(t, { balance: '0', price: {} })
  assert.equal((await free.post(LARGE)).status, 200)
  assert.equal((await free.post(LARGE)).status, 200)
})

test('a caller that leaves during these checks ends its call', async (t) => {
  const { post, announce, openCalls } = await startGateway(t, { balance: '0' })
  await post()
  await announce(LENGTHS[0] as string)
  while (openCalls.size > 0) await new Promise(setImmediate)
})
