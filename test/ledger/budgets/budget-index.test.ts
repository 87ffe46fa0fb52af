import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import {
  type Budget,
  type BudgetScope,
  budgetOfWallet,
  isLongPast,
} from '../../../lib/ledger/budgets/budget.ts'
import { type BudgetedCall, BudgetIndex } from '../../../lib/ledger/budgets/budget-index.ts'
import { budgetRefusal } from '../../../lib/ledger/budgets/budgets.ts'
import { accountWallet } from '../../../lib/ledger/index.ts'

const NOON = Date.UTC(2026, 10, 24, 12)
const DAY_MS = 86_400_000
const WHOLE = { account: 'acme', key: null, user: null, tag: null }

function budget(id: string, scope: Partial<BudgetScope> = {}, members: Partial<Budget> = {}): Budget {
  const terms = { amount: 5n, hard: true, soft: [] }
  return {
    id,
    scope: { ...WHOLE, ...scope },
    period: 'day',
    timezone: 'UTC',
    createdAt: 1,
    ...terms,
    ...members,
  }
}

function call(members: Partial<BudgetedCall> = {}): BudgetedCall {
  return { account: 'acme', key: null, user: null, tags: null, ...members }
}

/** Named by what a call must have. */
const SCOPES: Readonly<Record<string, Partial<BudgetScope>>> = {
  account: {},
  key: { key: 'k' },
  user: { user: 'ann' },
  tag: { tag: 'team=search' },
  keyUser: { key: 'k', user: 'ann' },
  keyTag: { key: 'k', tag: 'team=search' },
  userTag: { user: 'ann', tag: 'team=search' },
  all: { key: 'k', user: 'ann', tag: 'team=search' },
  otherAccount: { account: 'globex' },
  otherKey: { key: 'other' },
  otherTag: { tag: 'team=chat' },
  emptyUser: { user: '' },
}

function indexOf(...budgets: readonly Budget[]): BudgetIndex {
  const index = new BudgetIndex()
  for (const each of budgets) index.set(each)
  return index
}

const idsOf = (index: BudgetIndex, asked: BudgetedCall, at = NOON) =>
  index
    .matching(asked, at)
    .map((period) => period.budget)
    .sort()

describe('the budgets of a call', () => {
  const rows: [name: string, call: Partial<BudgetedCall>, budgets: string][] = [
    ['of the account alone', {}, 'account'],
    ['with a key', { key: 'k' }, 'account key'],
    ['with another key', { key: 'other' }, 'account otherKey'],
    ['with a user', { user: 'ann' }, 'account user'],
    ['with a user without a name', { user: '' }, 'account emptyUser'],
    ['with tags, of which one counts', { tags: { team: 'search', stage: 'test' } }, 'account tag'],
    ['with another value of a tag', { tags: { team: 'chat' } }, 'account otherTag'],
    ['with a key and a user', { key: 'k', user: 'ann' }, 'account key keyUser user'],
    ['with a key and a tag', { key: 'k', tags: { team: 'search' } }, 'account key keyTag tag'],
    ['with a user and a tag', { user: 'ann', tags: { team: 'search' } }, 'account tag user userTag'],
    [
      'with all of them',
      { key: 'k', user: 'ann', tags: { team: 'search' } },
      'account all key keyTag keyUser tag user userTag',
    ],
    ['of another account', { account: 'globex', key: 'k', user: 'ann' }, 'otherAccount'],
    ['of an account without budgets', { account: 'nobody', key: 'k' }, ''],
  ]
  const index = indexOf(...Object.entries(SCOPES).map(([id, scope]) => budget(id, scope)))
  for (const [name, members, budgets] of rows)
    it(`are those whose members match it: ${name}`, () => {
      assert.equal(idsOf(index, call(members)).join(' '), budgets)
    })

  it('are all of those with the same scope, until they are deleted', () => {
    const index = indexOf(
      budget('one', { key: 'k' }),
      budget('two', { key: 'k' }),
      budget('far', { account: 'globex' }),
    )
    assert.deepEqual([idsOf(index, call({ key: 'k' })), index.size], [['one', 'two'], 3])
    index.delete('one')
    index.delete('one')
    assert.deepEqual([idsOf(index, call({ key: 'k' })), index.size], [['two'], 2])
    index.delete('two')
    assert.deepEqual([idsOf(index, call({ key: 'k' })), index.size], [[], 1])
    assert.deepEqual(idsOf(index, call({ account: 'globex' })), ['far'])
    index.set(budget('three'))
    assert.deepEqual(idsOf(index, call({ key: 'k' })), ['three'])
  })

  it('are replaced by those of the same id, also with another scope and period', () => {
    const index = indexOf(budget('one', { key: 'k' }))
    index.set(budget('one', { account: 'globex' }, { period: 'total' }))
    assert.deepEqual([idsOf(index, call({ key: 'k' })), index.size], [[], 1])
    const [period] = index.matching(call({ account: 'globex' }), NOON)
    assert.deepEqual([period?.wallet, period?.endsAt], ['budget:one:0', null])
  })

  it('in an unknown time zone do not affect the others', () => {
    const index = indexOf(budget('one'))
    assert.throws(() => index.set(budget('one', {}, { timezone: 'Moon/Crater' })), RangeError)
    assert.deepEqual(idsOf(index, call()), ['one'])
  })

  it('have the wallet of the period of the call: the previous, the present, and the next one', () => {
    const index = indexOf(budget('one'))
    const midnight = NOON - DAY_MS / 2
    const walletAt = (at: number) => index.matching(call(), at)[0]?.wallet
    const of = (day: number) => `budget:one:${midnight + day * DAY_MS}`
    assert.deepEqual(
      [NOON, midnight + DAY_MS - 1, midnight + DAY_MS, midnight, midnight - 1, midnight + DAY_MS].map(
        walletAt,
      ),
      [of(0), of(0), of(1), of(0), of(-1), of(1)],
    )
    const [first] = index.matching(call(), NOON)
    assert.equal(first?.endsAt, midnight + DAY_MS)
    assert.equal(index.matching(call(), NOON + 1)[0], first, 'one and the same while it lasts')
  })

  const refusals: [scope: string, refused: string, owner: string][] = [
    ['account', 'insufficient_balance', 'the account'],
    ['key', 'key_quota_exhausted', 'the key'],
    ['user', 'key_quota_exhausted', 'the user "ann"'],
    ['tag', 'key_quota_exhausted', 'the tag "team=search"'],
    ['all', 'key_quota_exhausted', 'the key with the user "ann" with the tag "team=search"'],
  ]
  for (const [scope, refused, owner] of refusals)
    it(`refuse with a code, and a message that names their owner: ${scope}`, () => {
      const all = call({ key: 'k', user: 'ann', tags: { team: 'search' } })
      const [daily] = indexOf(budget('one', SCOPES[scope])).matching(all, NOON)
      const [total] = indexOf(budget('one', SCOPES[scope], { period: 'total' })).matching(all, NOON)
      assert.ok(daily && total)
      assert.equal(daily.refused, refused)
      const [begins, ends] = [
        `The budget of ${owner} does not cover this call.`,
        'The operator of the gateway can raise it.',
      ]
      assert.equal(budgetRefusal(daily), `${begins} It resets at 2026-11-25T00:00:00.000Z. ${ends}`)
      assert.equal(budgetRefusal(total), `${begins} ${ends}`)
    })
})

describe('the wallet of a budget', () => {
  it('names its budget, for any id', () => {
    assert.equal(budgetOfWallet('budget:b:1'), 'b')
    assert.equal(budgetOfWallet('budget:a:b:0'), 'a:b')
    assert.equal(budgetOfWallet(accountWallet('budget:b:1')), undefined)
  })

  it('is kept for a hundred days from the beginning of its period, and for a total without end', () => {
    const start = NOON - 100 * DAY_MS
    const past = (begin: number) => isLongPast(`budget:one:${begin}`, NOON)
    assert.deepEqual([start - 1, start, NOON, 1, 0].map(past), [true, false, false, true, false])
  })
})
