import assert from 'node:assert/strict'
import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { it, type TestContext } from 'node:test'
import type { Request } from 'express'
import { openCall } from '../../../lib/core/call/index.ts'
import { OPERATIONS } from '../../../lib/core/operations/index.ts'
import { videos } from '../../../lib/core/operations/video/videos.ts'
import { LeasePool, MemoryLedger, type ReserveClaim } from '../../../lib/ledger/index.ts'
import { Reservation } from '../../../lib/ledger/pool/reservation.ts'
import { type BillingGuardOptions, billingGuard } from '../../../lib/middleware/billing-guard/index.ts'
import { loadConfig } from '../../support/any-config.ts'
import { recordingLogger } from '../../support/app-server.ts'

const PRICED = { inputPerMillion: '1' }

/** Models of all kinds, at the model's own price or those of lines. */
function catalogOf(kind: string, ...models: { price?: object; lines?: readonly object[] }[]) {
  const line = { provider: 'p', protocol: 'openai', baseUrl: 'http://127.0.0.1:9/v1' }
  return loadConfig({
    models: [
      ...models.map(({ price }, i) => ({ id: `m${i}`, kind, ...(price && { price }) })),
      { id: 'other', kind: 'rerank' },
    ],
    lines: [
      ...models.flatMap(({ lines = [{}] }, i) =>
        lines.map((own, j) => ({ id: `l${i}-${j}`, ...line, models: { [`m${i}`]: 'm' }, ...own })),
      ),
      { id: 'other', ...line, models: { other: 'm' } },
    ],
  }).catalog
}

const operationOf = (path: string) => {
  const operation = [...OPERATIONS, videos].find((each) => each.path === path)
  assert.ok(operation, path)
  return operation
}

/** Asks a guard whether it refuses a call before its body is read, with a pool on accounts of some balance. */
async function early(t: TestContext, options: BillingGuardOptions, path = '/v1/chat/completions') {
  const ledger = new MemoryLedger({
    accounts: [
      { id: 'poor', balance: '0' },
      { id: 'rich', balance: '5' },
    ],
    keys: [{ id: 'spent', quota: '0' }],
  })
  const pool = new LeasePool({ ledger, logger: recordingLogger() })
  t.after(() => pool.close())
  const claims: ReserveClaim[] = []
  const reserve = pool.reserve.bind(pool)
  t.mock.method(pool, 'reserve', (claim: ReserveClaim) => {
    claims.push(claim)
    return reserve(claim)
  })
  const guard = billingGuard({ pool, ...options })
  return {
    pool,
    ledger,
    claims,
    async ask(account?: string, keyId: string | null = null, headers: Record<string, string> = {}) {
      const req = new IncomingMessage(new Socket()) as Request
      Object.assign(req, { headers })
      const call = openCall(req, new ServerResponse(req), { logger: recordingLogger() })
      if (account !== undefined) call.principal = { accountId: account, keyId } as typeof call.principal & {}
      const refusal = await guard.refuseEarly(req, call, operationOf(path))
      return { code: refusal?.code, billing: call.billing }
    },
    /** Lets the pool learn what an account has. */
    async know(account: string, key: string | null = null) {
      const held = await reserve({ account, key, amount: 5n })
      if (held instanceof Reservation) held.release()
    },
  }
}

it('an account or key without money is refused before the body is read, once that is known', async (t) => {
  const { ask, know, claims, ledger, pool } = await early(t, {
    catalog: catalogOf('chat', { price: PRICED }),
  })
  assert.equal((await ask('poor')).code, undefined, 'nothing is known yet')
  assert.deepEqual(claims, [])
  await know('poor')
  const { code, billing } = await ask('poor')
  assert.equal(code, 'insufficient_balance')
  assert.deepEqual([billing?.required, billing?.available, billing?.charged], [1n, 0n, null])
  await know('rich', 'spent')
  assert.equal((await ask('rich', 'spent')).code, 'key_quota_exhausted')
  await know('rich')
  const asked = claims.length
  assert.equal((await ask('rich')).code, undefined)
  assert.equal(claims.length, asked, 'who has money is not held any')
  await pool.close()
  assert.equal((await ledger.check()).leased, 0n)
})

it('a caller that waits for a 100 is refused at once, and nothing stays held', async (t) => {
  const { ask, ledger, pool, claims } = await early(t, { catalog: catalogOf('chat', { price: PRICED }) })
  const waiting = { expect: '100-continue' }
  assert.equal((await ask('poor', null, waiting)).code, 'insufficient_balance')
  assert.equal((await ask('rich', null, waiting)).code, undefined)
  assert.deepEqual(
    claims.map(({ amount }) => amount),
    [1n, 1n],
  )
  await pool.close()
  assert.equal((await ledger.check()).leased, 0n)
})

it('the account and the key that the app names are asked, and none where it names none', async (t) => {
  const catalog = catalogOf('chat', { price: PRICED })
  const named = await early(t, { catalog, account: () => 'poor', key: () => 'spent' })
  for (const known of ['rich', undefined])
    assert.notEqual((await named.ask(known, null, { expect: '100-continue' })).code, undefined)
  assert.deepEqual(
    named.claims.map(({ account, key }) => [account, key]),
    [
      ['poor', 'spent'],
      ['poor', 'spent'],
    ],
  )
  const keyless = await early(t, { catalog, account: () => 'poor' })
  await keyless.ask(undefined, null, { expect: '100-continue' })
  assert.deepEqual(keyless.claims, [{ account: 'poor', key: null, amount: 1n, budgets: [] }])
  const nobody = await early(t, { catalog })
  assert.equal((await nobody.ask(undefined, null, { expect: '100-continue' })).code, undefined)
  assert.deepEqual(nobody.claims, [])
  const own = await early(t, { catalog, reserve: () => '1' })
  assert.equal(
    (await own.ask('poor', null, { expect: '100-continue' })).code,
    undefined,
    'what a call costs is the app’s',
  )
  assert.deepEqual(own.claims, [])
})

for (const [what, kind, models, path, refused] of [
  ['a model with a price for input', 'chat', [{ price: PRICED }], '/v1/chat/completions', true],
  [
    'a model with a price per request',
    'chat',
    [{ price: { perRequest: '1' } }],
    '/v1/chat/completions',
    true,
  ],
  ['a model with both', 'chat', [{ price: { ...PRICED, perRequest: '1' } }], '/v1/chat/completions', true],
  [
    'a model with a price for output alone',
    'chat',
    [{ price: { outputPerMillion: '1' } }],
    '/v1/chat/completions',
    false,
  ],
  ['a free model beside another', 'chat', [{ price: PRICED }, {}], '/v1/chat/completions', false],
  ['a free model of another kind', 'image', [{}], '/v1/chat/completions', true],
  ['a priced line of a free model', 'chat', [{ lines: [{ price: PRICED }] }], '/v1/chat/completions', true],
  [
    'a free line beside a priced one',
    'chat',
    [{ price: PRICED, lines: [{}, { price: { inputPerMillion: '0' } }] }],
    '/v1/chat/completions',
    true,
  ],
  [
    'only free lines of a priced model',
    'chat',
    [{ price: PRICED, lines: [{ price: { inputPerMillion: '0' } }] }],
    '/v1/chat/completions',
    false,
  ],
  ['a free model without a line', 'chat', [{ lines: [] }], '/v1/chat/completions', false],
  ['a priced model without a line', 'chat', [{ price: PRICED, lines: [] }], '/v1/chat/completions', true],
  ['seconds of chat, which has none', 'chat', [{ price: { perSecond: '1' } }], '/v1/chat/completions', false],
  ['seconds of video', 'video', [{ price: { perSecond: '1' } }], '/v1/videos', true],
  ['seconds of video and more', 'video', [{ price: { ...PRICED, perSecond: '1' } }], '/v1/videos', true],
  ['an endpoint that is never charged', 'chat', [{ price: PRICED }], '/v1/messages/count_tokens', false],
] as const) {
  it(`a call that ${refused ? 'must cost something needs money' : 'may be free needs none'}: ${what}`, async (t) => {
    const { ask, claims } = await early(t, { catalog: catalogOf(kind, ...models) }, path)
    const { code } = await ask('poor', null, { expect: '100-continue' })
    assert.equal(code, refused ? 'insufficient_balance' : undefined)
    assert.equal(claims.length, refused ? 1 : 0)
  })
}
