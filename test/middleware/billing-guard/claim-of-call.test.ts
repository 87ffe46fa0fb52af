import assert from 'node:assert/strict'
import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { describe, it, type TestContext } from 'node:test'
import type { Request, Response } from 'express'
import { type Call, type OpenCall, openCall } from '../../../lib/core/call/index.ts'
import { GatewayError } from '../../../lib/core/errors/index.ts'
import { chatCompletions, OPERATIONS } from '../../../lib/core/operations/index.ts'
import type { BudgetPeriod } from '../../../lib/ledger/budgets/budget.ts'
import type { ReserveClaim } from '../../../lib/ledger/index.ts'
import type { ReserveRefusal } from '../../../lib/ledger/pool/reservation.ts'
import { type BillingGuardOptions, billingGuard } from '../../../lib/middleware/billing-guard/index.ts'
import { configWith } from '../../core/config/config.ts'
import { ledgerOf, units } from '../../ledger/support/faulty-ledger.ts'
import { PoolProcess } from '../../ledger/support/pool-process.ts'
import { loadConfig } from '../../support/any-config.ts'
import { recordingLogger } from '../../support/app-server.ts'

const ACME = { accountId: 'acme', keyId: 'k1', lineRegions: undefined } as unknown as OpenCall['principal']
const PERIOD = { budget: 'monthly' } as unknown as BudgetPeriod
const reserve = () => 5n

/** A guard in front of one call. Its pool gives the answer that the test sets, or holds the money. */
async function guarded(
  t: TestContext,
  options: BillingGuardOptions,
  answer?: ReserveRefusal | 'later',
  members: object = { principal: ACME },
) {
  const process = new PoolProcess(ledgerOf('10'))
  const held = await process.admitted(units(1))
  const release = t.mock.method(held, 'release')
  const claims: ReserveClaim[] = []
  const opening = Promise.withResolvers<typeof held>()
  t.mock.method(process.pool, 'reserve', (claim: ReserveClaim) => {
    claims.push(claim)
    return answer === 'later' ? opening.promise : (answer ?? held)
  })
  const req = new IncomingMessage(new Socket()) as Request
  const res = new ServerResponse(req) as Response
  const call = openCall(req, res, { logger: recordingLogger() })
  Object.assign(call, members)
  const passed: unknown[] = []
  const guard = billingGuard({ pool: process.pool, ...options })
  return {
    ...{ call, claims, passed, release },
    close: () => res.emit('close'),
    open: () => opening.resolve(held),
    fail: opening.reject,
    run: () => guard(req, res, (error?: unknown) => passed.push(error)),
  }
}

const settled = () => new Promise((resolve) => setImmediate(resolve))

describe('the money for a call', () => {
  it('is asked for with the budgets that the call counts against, where there are any', async (t) => {
    t.mock.timers.enable({ apis: ['Date'], now: 70_000 })
    const asked: unknown[] = []
    const budgets = (count: number): NonNullable<BillingGuardOptions['budgets']> => ({
      count,
      matching(...given) {
        asked.push(given)
        return [PERIOD]
      },
      refusal: () => ({}),
    })
    const claim = { account: 'acme', key: 'k1', amount: 5n }
    const members = { principal: ACME, user: 'eve', tags: { team: 'a' } }
    for (const [count, claims] of [
      [0, [claim]],
      [1, [{ ...claim, budgets: [PERIOD] }]],
    ] as const) {
      const guard = await guarded(t, { reserve, budgets: budgets(count) }, undefined, members)
      guard.run()
      assert.deepEqual([guard.claims, guard.passed], [claims, [undefined]])
    }
    assert.deepEqual(asked, [[{ ...claim, user: 'eve', tags: { team: 'a' } }, 70_000]])
  })

  it('is refused in the words of the budget, with nothing held or charged', async (t) => {
    const refusal = { refused: 'insufficient_balance', required: 5n, available: 4n, budget: PERIOD } as const
    const budgets = { count: 1, matching: () => [PERIOD], refusal: () => ({ message: 'Used up.' }) }
    const { run, passed, call, release } = await guarded(t, { reserve, budgets }, refusal)
    run()
    const [error] = passed
    assert.ok(error instanceof GatewayError)
    assert.deepEqual([error.code, error.message], ['insufficient_balance', 'Used up.'])
    const amounts = { reserved: null, charged: null, required: 5n, available: 4n }
    assert.deepEqual(call.billing, { ...amounts, items: [], own: undefined, budget: 'monthly' })
    assert.equal(release.mock.callCount(), 0)
  })

  it('goes back where its caller has left while it was asked for', async (t) => {
    const { run, passed, call, release, close, open } = await guarded(t, { reserve }, 'later')
    run()
    assert.equal(passed.length, 0)
    call.hold()
    close()
    open()
    await settled()
    const [error] = passed
    assert.ok(error instanceof GatewayError)
    assert.equal(error.code, 'client_closed_request')
    assert.deepEqual([release.mock.callCount(), call.billing, passed.length], [1, null, 1])
  })

  it('that cannot be asked for fails the call', async (t) => {
    const { run, passed, fail } = await guarded(t, { reserve }, 'later')
    run()
    fail(new Error('the pool is gone'))
    await settled()
    assert.deepEqual(passed.map(String), ['Error: the pool is gone'])
  })

  it('is not asked for where the endpoint is never charged, or no account can be', async (t) => {
    const { catalog } = loadConfig(configWith())
    const operation = OPERATIONS.find(({ priceUnit }) => priceUnit === 'none')
    const free = await guarded(t, { catalog }, undefined, { principal: ACME, request: { operation } })
    free.run()
    assert.deepEqual([free.claims, free.passed, free.call.billing], [[], [undefined], null])
    const nobody = await guarded(t, { reserve }, undefined, {})
    nobody.run()
    assert.match(String(nobody.passed[0]), /^TypeError: billingGuard: there is no account to charge/)
    assert.deepEqual(nobody.claims, [])
  })

  it('is the most that the request can cost by the catalogue, whichever holds for the call', async (t) => {
    const price = (perRequest: string) =>
      loadConfig(configWith({ models: [{ id: 'chat', kind: 'chat', price: { perRequest } }] })).catalog
    const seen: Call[] = []
    for (const each of ['0.5', '0.7']) {
      const catalog = price(each)
      const model = catalog.models.get('chat')
      const request = {
        ...{
          operation: chatCompletions,
          model,
          fallbacks: [],
          estimatedInputTokens: 4,
          answers: 1,
          webSearches: 0,
        },
      }
      const catalogOf = (call: Call) => {
        seen.push(call)
        return catalog
      }
      const guard = await guarded(t, { catalog: catalogOf }, undefined, { principal: ACME, request })
      guard.run()
      assert.deepEqual(
        guard.claims.map(({ amount }) => amount),
        [units(Number(each))],
      )
      assert.equal(seen.at(-1), guard.call)
    }
    const unread = await guarded(t, { catalog: price('0.5') })
    assert.throws(
      () => unread.run(),
      /^TypeError: billingGuard: there is no call\.request; mount readRequest/,
    )
  })

  it('is none for a free call, which needs no charge unless something may charge it', async (t) => {
    const line = {
      id: 'l',
      provider: 'p',
      protocol: 'openai',
      baseUrl: 'http://127.0.0.1:1/v1',
      apiKey: 'k',
      models: { chat: 'c' },
    }
    const pricedAt = (price: object) => {
      const models = [
        { id: 'chat', kind: 'chat', price },
        { id: 'unserved', kind: 'chat' },
      ]
      return loadConfig(configWith({ models, lines: [line] })).catalog
    }
    const free = pricedAt({})
    const settles = async (options: BillingGuardOptions, members: object = {}, model = 'chat') => {
      const { catalog = free } = options
      const request = {
        operation: chatCompletions,
        model: (catalog as typeof free).models.get(model),
        fallbacks: [],
        estimatedInputTokens: 4,
        answers: 1,
        webSearches: 0,
        body: { json: {}, raw: Buffer.alloc(0) },
      }
      const call = { principal: ACME, request, ...members }
      const { run, claims } = await guarded(t, options, undefined, call)
      run()
      assert.equal(claims[0]?.amount, 0n)
      return claims[0].settles ?? true
    }
    assert.equal(await settles({ catalog: free }), false)
    assert.equal(await settles({ catalog: free }, { idempotency: { claim: null } }), false)
    assert.equal(await settles({ catalog: free }, { idempotency: { claim: {} } }), true)
    assert.equal(await settles({ reserve: () => 0n }), true)
    assert.equal(await settles({ catalog: free }, {}, 'unserved'), true, 'a handler may charge it')
    for (const price of [
      { perWebSearch: '0.01' },
      { cachedInputPerMillion: '0.1' },
      { tiers: [{ aboveInputTokens: 1000, inputPerMillion: '1' }] },
      { tiers: [{ serviceTier: 'priority', outputPerMillion: '1' }] },
    ])
      assert.equal(await settles({ catalog: pricedAt(price) }), true, JSON.stringify(price))
  })

  it('is held for five minutes where nothing else is said, for a handler that goes on', async (t) => {
    const { run, release, close } = await guarded(t, { reserve })
    run()
    t.mock.timers.enable({ apis: ['setTimeout'] })
    close()
    t.mock.timers.tick(299_999)
    assert.equal(release.mock.callCount(), 0)
    t.mock.timers.tick(1)
    assert.equal(release.mock.callCount(), 1)
  })

  it('is open to every caller where no pool is given: spending is recorded, and no call refused', async () => {
    const req = new IncomingMessage(new Socket()) as Request
    const call = openCall(req, new ServerResponse(req), { logger: recordingLogger() })
    const guard = billingGuard({ account: () => 'anybody', reserve: () => '1000000' })
    const error = await new Promise((resolve) => guard(req, new ServerResponse(req) as Response, resolve))
    assert.deepEqual([error, call.billing?.reserved], [undefined, units(1_000_000)])
  })
})

describe('the answer of the app to the guard', () => {
  for (const [option, answers, told] of [
    ['reserve', [1, undefined, null, Promise.resolve(1n)], /"reserve" must return a decimal string/],
    ['account', ['', 7, null, {}], /"account" must return the id of an account, or undefined/],
    ['key', [7, undefined, {}], /"key" must return the id of a key, or null/],
  ] as const)
    for (const answer of answers)
      it(`is refused where it makes no sense: ${option}, ${String(answer)}`, async (t) => {
        const { run, claims, passed } = await guarded(t, { reserve, [option]: () => answer })
        assert.throws(run, told)
        assert.deepEqual([claims, passed], [[], []])
      })

  it('may have no account, or no key', async (t) => {
    const nobody = await guarded(t, { reserve, account: () => undefined })
    nobody.run()
    assert.match(String(nobody.passed[0]), /no account to charge/)
    const keyless = await guarded(t, { reserve, key: () => null })
    keyless.run()
    assert.deepEqual(keyless.claims, [{ account: 'acme', key: null, amount: 5n }])
    const keyed = await guarded(t, { reserve, key: () => 'k2' })
    keyed.run()
    assert.deepEqual(keyed.claims, [{ account: 'acme', key: 'k2', amount: 5n }])
  })
})
