import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { formatAmount, parseAmount } from '../../../lib/core/catalog/index.ts'
import { BACKENDS } from '../../stores/sql/support/postgres-database.ts'
import type { GatewayProcess } from '../../support/gateway-process.ts'
import { bookedOf, GROUPINGS, refund, sumsBy, unseenCharges, type World } from './month-books.ts'
import { callOf, type Made, monthWorld, priceOf } from './month-world.ts'
import { sawEnd, shutDown } from './paid-gateways.ts'

const MARCH = 'from=2026-03-01&to=2026-04-01'
const EVER = 'from=2026-01-01&to=2027-01-01'
const CALLERS = 12

const seen = ({ call, answer }: Made) => sawEnd({ text: '', key: call.key, stream: call.stream }, answer)

/** Callers of all accounts, who take turns at the gateways. */
async function traffic(
  world: World,
  gateways: readonly GatewayProcess[],
  from: number,
  count: number,
  onMade: (made: Made) => void = () => {},
): Promise<Made[]> {
  const all: Made[] = []
  let next = from
  const callers = Array.from({ length: CALLERS }, async (_, i) => {
    while (next < from + count) {
      const made = await world.make(gateways[i % gateways.length] as GatewayProcess, callOf(next++))
      all.push(made)
      onMade(made)
    }
  })
  await Promise.all(callers)
  return all
}

/** Calls of one account, by the gateways in turn, until these refuse several in a row. */
async function spendUp(
  world: World,
  gateways: readonly GatewayProcess[],
  next: () => number,
): Promise<Made[]> {
  const all: Made[] = []
  for (let refused = 0; refused < 4; ) {
    const made = await world.make(gateways[all.length % gateways.length] as GatewayProcess, callOf(next()))
    all.push(made)
    const { status, errorCode = '' } = made.answer ?? {}
    refused = status === 200 ? 0 : refused + 1
    if (refused > 0)
      assert.ok(['insufficient_balance', 'quota_lease_exhausted'].includes(errorCode), errorCode)
    assert.ok(all.length < 500, 'the budget does not end')
  }
  return all
}

/** Returns all rows of a report. */
async function report(world: World, gateway: GatewayProcess, query: string, bearer?: string) {
  const rows = []
  let cursor = ''
  for (;;) {
    const path = `${bearer === undefined ? '/admin' : '/v1'}/usage?${query}&limit=3${cursor}`
    const page = await world.ask(gateway, path, undefined, bearer)
    rows.push(...page.data)
    if (page.next_cursor === null) return rows
    cursor = `&cursor=${page.next_cursor}`
  }
}

for (const { name, url, skip } of BACKENDS) {
  const processes = name === 'Postgres' ? 2 : 1
  describe(`a month of ten accounts on ${name}, ${processes} gateways`, { skip, timeout: 240_000 }, () => {
    it('closes: all reports equal each other, the ledger and the bill of the upstream to the nano-unit', async (t: TestContext) => {
      const databaseUrl = await url(t)
      const world = await monthWorld(t, databaseUrl)
      await world.setClock('2026-03-03T09:00:00Z')
      const gateways = await Promise.all(Array.from({ length: processes }, world.start))
      const all = await traffic(world, gateways, 0, 100)

      await world.setClock('2026-03-15T11:59:58Z')
      const [victim] = gateways as [GatewayProcess]
      let answered = 0
      const killed = await traffic(world, gateways, 1000, 150, () => {
        if (++answered === 60) victim.kill('SIGKILL')
      })
      all.push(...killed)
      assert.ok(
        killed.some((made) => !seen(made)),
        'some callers lost their answers',
      )
      gateways[0] = await world.start()
      const refunded = all.filter(seen).filter(({ call }) => call.number % 21 === 0)
      assert.ok(refunded.length > 5)
      await refund(databaseUrl, refunded, world.now())
      const adjustment = { amount: '-1.25', reference: 'correction', reason: 'billed twice' }
      await world.ask(gateways[0], '/admin/accounts/account-1/adjustments', adjustment)
      const deposit = { amount: '3.000000001', reference: 'invoice-1' }
      await world.ask(gateways[0], '/admin/accounts/account-2/deposits', deposit)

      // Midnight in Tokyo.
      await world.setClock('2026-03-20T14:58:00Z')
      const terms = { amount: '0.0004', period: 'day', timezone: 'Asia/Tokyo', hard: true }
      const scope = { scope: { account: 'account-0' }, ...terms }
      const { id } = await world.ask<{ id: string }>(gateways[0], '/admin/budgets', scope)
      const budget = () =>
        world.ask<{ spent: string; resets_at: string }>(gateways[0] as GatewayProcess, `/admin/budgets/${id}`)
      let number = 10_000
      const next = () => (number += 10)
      all.push(...(await spendUp(world, gateways, next)))
      assert.equal((await budget()).resets_at, '2026-03-20T15:00:00.000Z')
      await world.setClock('2026-03-20T15:00:01Z')
      const day = await spendUp(world, gateways, next)
      all.push(...day)
      assert.ok(day.filter(seen).length > 3, 'the new day has a budget of its own')
      const spent = day.filter(seen).reduce((sum, { call }) => sum + priceOf(call), 0n)
      assert.ok(spent <= parseAmount(terms.amount))
      const kept = await budget()
      assert.deepEqual([kept.spent, kept.resets_at], [formatAmount(spent), '2026-03-21T15:00:00.000Z'])

      await world.setClock('2026-03-31T23:00:00Z')
      all.push(...(await traffic(world, gateways, 3001, 40)))
      await world.setClock('2026-04-01T00:00:01Z')
      const april = await traffic(world, gateways, 4001, 40)
      await shutDown(gateways)

      const gateway = await world.start()
      const standing = all.filter((made) => seen(made) && !refunded.includes(made))
      const march = standing.map((made) => bookedOf(world, made))
      const ids = [...all, ...april].filter(seen).map(({ answer }) => answer?.requestId ?? '')
      const unseen = await unseenCharges(databaseUrl, new Set(ids))
      assert.ok(unseen.length <= killed.filter((made) => !seen(made)).length)
      march.push(...unseen)
      const total = march.reduce((sum, { charged }) => sum + charged, 0n)
      for (const [group, groupOf] of Object.entries(GROUPINGS)) {
        const rows = await report(world, gateway, `${MARCH}&group_by=${group}`)
        const charged = rows.filter(({ charged }) => charged !== '0')
        const shown = charged.map(({ requests, refused, failed, charged, cost, ...row }) => [
          row[group] as string | null,
          [Number(requests) - Number(refused) - Number(failed), charged, cost].join(),
        ])
        const sorted = (sums: Iterable<unknown>) => [...sums].map((row) => JSON.stringify(row)).sort()
        assert.deepEqual(sorted(shown), sorted(sumsBy(march, groupOf)), group)
        assert.equal(
          rows.reduce((sum, { charged }) => sum + parseAmount(String(charged)), 0n),
          total,
        )
      }
      const [own] = await report(world, gateway, MARCH, 'sk-account-3-key-1')
      const [shown] = await report(world, gateway, `${MARCH}&account=account-3`)
      assert.deepEqual({ ...own, cost: shown?.cost }, { ...shown })

      const check = await world.ask<{ violations: string[]; spent: string; charges: number }>(
        gateway,
        '/admin/ledger/check',
      )
      const aprils = april.filter(seen).reduce((sum, { call }) => sum + priceOf(call), 0n)
      assert.deepEqual([check.violations, check.spent], [[], formatAmount(total + aprils)])
      assert.equal(check.charges, march.length + refunded.length + april.filter(seen).length)
      const [ever] = await report(world, gateway, EVER)
      assert.equal(ever?.charged, check.spent)
      const deposited = async (account: string) =>
        (await world.ask<{ deposited: string }>(gateway, `/admin/accounts/${account}`)).deposited
      assert.deepEqual(
        [await deposited('account-1'), await deposited('account-2')],
        ['98.75', '103.000000001'],
      )
      t.diagnostic(
        `${march.length} calls in March, ${unseen.length} of them unseen, ${refunded.length} refunded: ${formatAmount(total)}`,
      )
      await shutDown([gateway])
    })
  })
}
