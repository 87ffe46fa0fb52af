import assert from 'node:assert/strict'
import { it, type TestContext } from 'node:test'
import { Budgets, LeasePool } from '../../../lib/ledger/index.ts'
import { Reservation } from '../../../lib/ledger/pool/reservation.ts'
import { onEveryBackend } from '../admin-server.ts'

/** When periods begin: at midnight, where clocks are set, and where they skip or repeat midnight. */
const BOUNDARIES = [
  ['Asia/Tokyo', 'day', '2030-06-30T15:00:00Z'],
  ['Asia/Tokyo', 'month', '2030-06-30T15:00:00Z'],
  // The day of 23 hours, then the day of 25.
  ['Europe/Berlin', 'day', '2030-03-30T23:00:00Z'],
  ['Europe/Berlin', 'day', '2030-03-31T22:00:00Z'],
  ['Europe/Berlin', 'day', '2030-10-27T23:00:00Z'],
  ['Europe/Berlin', 'week', '2030-03-31T22:00:00Z'],
  // 00:00 becomes 01:00; 00:00 becomes 23:00, and a second midnight begins nothing.
  ['Africa/Cairo', 'day', '2030-04-25T22:00:00Z'],
  ['Africa/Cairo', 'day', '2030-10-31T22:00:00Z'],
] as const

onEveryBackend('the boundaries of a budget', (server) => {
  let made = 0
  /** A process that spends of a budget of 4, and of another account beside. */
  async function process(t: TestContext, account: string) {
    const pool = new LeasePool({ ledger: server().ledger })
    t.after(() => pool.close())
    const budgets = new Budgets({ store: server().budgets })
    await budgets.refresh()
    budgets.close()
    const matching = (at: number) => budgets.matching({ account, key: null, user: null, tags: null }, at)
    return {
      wallet: (at: number) => matching(at).map(({ wallet }) => wallet),
      hold: (amount: bigint, at: number) =>
        pool.reserve({ account, key: null, amount, budgets: matching(at) }),
    }
  }

  for (const [timezone, period, moment] of BOUNDARIES)
    it(`are the same in two processes under traffic: a ${period} in ${timezone} from ${moment} on`, async (t) => {
      const account = `acme-${++made}`
      await server().ask('POST', '/admin/accounts', { id: account, prepaid: false })
      const body = { scope: { account }, amount: '0.000000004', period, timezone }
      assert.equal((await server().ask('POST', '/admin/budgets', body)).status, 201)
      const [one, other] = [await process(t, account), await process(t, account)]
      const end = Date.parse(moment)
      const settle = async (held: unknown, at: number) => {
        assert.ok(held instanceof Reservation)
        const requestId = `req_${account}_${++made}`
        await held.settle({ requestId, amount: 2n, at, basis: () => '[]', claim: null, entry: null })
      }
      const refused = async (held: unknown) => {
        const refusal = await held
        assert.ok(!(refusal instanceof Reservation))
        assert.equal((refusal as { budget?: { endsAt: number } }).budget?.endsAt, end)
      }
      const last = [await one.hold(2n, end - 1), await other.hold(2n, end - 1)]
      for (const each of [one, other]) await refused(each.hold(1n, end - 1))
      // They end behind the boundary, while others have begun there.
      const first = [await one.hold(2n, end), await other.hold(2n, end)]
      for (const held of [...last, ...first]) await settle(held, end + 1)
      // A clock that is behind counts in the earlier period still.
      await refused(other.hold(1n, end - 1))
      for (const each of [one, other]) {
        const wallets = [...each.wallet(end - 1), ...each.wallet(end)]
        const spent = (await server().ledger.wallets(wallets)).map((wallet) => wallet.spent)
        assert.deepEqual(spent, [4n, 4n])
      }
      assert.deepEqual((await server().ask('GET', '/admin/ledger/check')).body.violations, [])
    })
})
