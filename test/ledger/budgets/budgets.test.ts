import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import type { BudgetScope } from '../../../lib/ledger/budgets/budget.ts'
import { type BudgetChanges, Budgets } from '../../../lib/ledger/budgets/budgets.ts'
import { recordingLogger } from '../../support/app-server.ts'

const NOON = Date.UTC(2026, 10, 24, 12)
const WHOLE: BudgetScope = { account: 'acme', key: null, user: null, tag: null }

type Changed = BudgetChanges['budgets'][number]

function budget(id: string, members: Partial<Changed> = {}): Changed {
  const terms = { amount: 5n, hard: true, soft: [], period: 'day' as const, timezone: 'UTC', createdAt: 1 }
  return { id, scope: WHOLE, ...terms, deleted: false, ...members }
}

/** Budgets of a store whose answers the test sets. */
function world(t: TestContext) {
  const asked: number[] = []
  const noted: string[] = []
  const logger = recordingLogger()
  const store = {
    answer: { version: 0, budgets: [] } as BudgetChanges,
    isAway: false,
    async changes(since: number) {
      asked.push(since)
      if (store.isAway) throw new Error('away')
      return store.answer
    },
    async noteRefusal(wallet: string) {
      noted.push(wallet)
      if (store.isAway) throw new Error('away')
    },
  }
  const budgets = new Budgets({ store, logger, pollMs: 4000 })
  t.after(() => budgets.close())
  const call = { account: 'acme', key: 'k', user: 'ann', tags: { team: 'search' } }
  const matching = () => budgets.matching(call, NOON)
  const ids = () =>
    matching()
      .map((period) => period.budget)
      .sort()
  const learn = async (version: number, ...changed: readonly Changed[]) => {
    store.answer = { version, budgets: changed }
    await budgets.refresh()
  }
  return { ...{ asked, noted, logger, store, budgets, matching, ids, learn } }
}

describe('the budgets that a process knows', () => {
  it('are those of the store, which is read for changes', async (t) => {
    const { asked, budgets, ids, learn } = world(t)
    await learn(7, budget('one'), budget('two'))
    assert.deepEqual([ids(), budgets.count], [['one', 'two'], 2])
    await learn(9, budget('one', { deleted: true }), budget('three'))
    assert.deepEqual([ids(), budgets.count], [['three', 'two'], 2])
    await learn(9)
    assert.deepEqual(asked, [0, 7, 9])
  })

  it('are read to the last page at once, and resume there if the store is away meanwhile', async (t) => {
    const { asked, store, budgets, ids } = world(t)
    const pages: Record<number, BudgetChanges> = {
      0: { version: 1, budgets: [budget('one')], more: true },
      1: { version: 2, budgets: [budget('two')], more: true },
      2: { version: 3, budgets: [budget('three')] },
    }
    store.changes = async (since) => {
      asked.push(since)
      if (asked.length === 3) throw new Error('away')
      return pages[since] ?? { version: since, budgets: [] }
    }
    await assert.rejects(budgets.refresh())
    assert.deepEqual([ids(), budgets.count], [['one', 'two'], 2])
    await budgets.refresh()
    assert.deepEqual([ids(), budgets.count], [['one', 'three', 'two'], 3])
    assert.deepEqual(asked, [0, 1, 2, 2])
  })

  it('stay as they are while the store is away', async (t) => {
    const { asked, store, budgets, ids, learn } = world(t)
    await learn(7, budget('one'))
    store.isAway = true
    await assert.rejects(budgets.refresh())
    assert.deepEqual([ids(), budgets.count], [['one'], 1])
    store.isAway = false
    await learn(8, budget('one', { deleted: true }))
    assert.deepEqual([asked, ids()], [[0, 7, 7], []])
  })

  it('are logged if one of them cannot be used here, and the others apply', async (t) => {
    const { logger, ids, learn } = world(t)
    await learn(1, budget('odd', { timezone: 'Moon/Base' }), budget('one'))
    assert.deepEqual(ids(), ['one'])
    assert.deepEqual(
      logger.lines.map(({ level, message, fields }) => [
        level,
        message,
        (fields as { budget: string }).budget,
      ]),
      [['error', 'budgets: a budget does not count in this process', 'odd']],
    )
  })
})

describe('a call refused by a budget', () => {
  const scopes: [narrowest: 'account' | 'key' | 'user' | 'tag', scope: Partial<BudgetScope>][] = [
    ['account', {}],
    ['key', { key: 'k' }],
    ['user', { user: 'ann' }],
    ['user', { key: 'k', user: 'ann' }],
    ['tag', { tag: 'team=search' }],
    ['tag', { key: 'k', user: 'ann', tag: 'team=search' }],
  ]
  for (const [narrowest, scope] of scopes)
    it(`is counted by the narrowest member of its scope: ${narrowest} of ${JSON.stringify(scope)}`, async (t) => {
      const { budgets, matching, learn } = world(t)
      await learn(1, budget('one', { scope: { ...WHOLE, ...scope } }))
      const [period] = matching()
      assert.ok(period)
      for (let times = 0; times < 2; times++) budgets.refusal(period.refused, period)
      assert.deepEqual(budgets.refusals, { account: 0, key: 0, user: 0, tag: 0, [narrowest]: 2 })
    })

  it('returns the reason, and reports an event to operators for the first call of a period', async (t) => {
    const { budgets, matching, learn, noted } = world(t)
    await learn(1, budget('one'), budget('two'))
    const [one, two] = matching()
    assert.ok(one && two)
    for (const period of [one, one, two]) {
      const { message } = budgets.refusal(period.refused, period)
      assert.match(message ?? '', /^The budget of the account does not cover this call\./)
    }
    assert.deepEqual(noted, [one.wallet, two.wallet])
  })

  it('is reported to operators at the next refusal if the store was away', async (t) => {
    const { budgets, matching, learn, noted, store } = world(t)
    await learn(1, budget('one'))
    const [one] = matching()
    assert.ok(one)
    store.isAway = true
    budgets.refusal(one.refused, one)
    await new Promise(setImmediate)
    store.isAway = false
    budgets.refusal(one.refused, one)
    await new Promise(setImmediate)
    budgets.refusal(one.refused, one)
    assert.deepEqual(noted, [one.wallet, one.wallet])
  })

  it('returns no reason if other calls hold the rest, and reports no event', async (t) => {
    const { budgets, matching, learn, noted } = world(t)
    await learn(1, budget('one'))
    const [one] = matching()
    assert.ok(one)
    assert.deepEqual(budgets.refusal('quota_lease_exhausted', one), {})
    assert.deepEqual([noted, budgets.refusals.account], [[], 1])
  })
})
