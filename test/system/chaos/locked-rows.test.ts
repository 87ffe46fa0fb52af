import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Client } from 'pg'
import { cleaningUp } from '../../support/clean-up.ts'
import type { GatewayProcess } from '../../support/gateway-process.ts'
import { watchHeldUp } from '../../support/held-up.ts'
import { startPostgres, WITHOUT_POSTGRES } from '../../support/postgres-server.ts'
import { chatAnswer } from '../../support/scripted-upstream.ts'
import { until, untilAsync } from '../../support/until.ts'
import { booksOf, type PaidGateways, paidGateways, pay, shutDown } from './paid-gateways.ts'
import { assertUndisturbed, type Steady, steadyLoad } from './steady-load.ts'

const LOCKED_MS = 3000

/** The rows that an operator may lock for a while: those of one account, of each kind that calls write. */
const LOCKS: Readonly<Record<string, (account: string) => readonly string[]>> = {
  'the wallet of the account': (account) => [
    `select 1 from wallets where id = 'account:${account}' for update`,
  ],
  'the wallet of a key': (account) => [`select 1 from wallets where id = 'key:${account}' for update`],
  leases: (account) => [
    `select 1 from leases where wallet in ('account:${account}', 'key:${account}') for update`,
  ],
  'records of keys': (account) => [
    `select 1 from idempotency where owner in (select id from calls where account = '${account}') or state = 'running' for update`,
  ],
  'entries of calls': (account) => [`select 1 from calls where account = '${account}' for update`],
  'usage of hours and days': (account) => [`select 1 from usage where account = '${account}' for update`],
  'all of them': (account) => [
    `select 1 from wallets where id in ('account:${account}', 'key:${account}') for update`,
    `select 1 from leases where wallet in ('account:${account}', 'key:${account}') for update`,
    `select 1 from calls where account = '${account}' for update`,
  ],
}

/** One account for each lock, and one beside them. */
const ACCOUNTS = [...Object.keys(LOCKS).map((_, i) => `locked-${i}`), 'steady']

const CONFIG = {
  accounts: ACCOUNTS.map((id) => ({ id, balance: '1000' })),
  keys: ACCOUNTS.map((id) => ({ id, account: id, quota: '500' })),
  price: { perRequest: '0.01' },
}

describe('rows of one account that another connection has locked', {
  skip: WITHOUT_POSTGRES,
  timeout: 240_000,
}, () => {
  let world: PaidGateways
  let gateway: GatewayProcess
  let alone: Steady
  let made = 0
  const keyed = (key: string) => ({ key, idempotencyKey: `${key}-${++made}` })
  const cleanUp = cleaningUp()
  before(async () => {
    const postgres = await startPostgres()
    cleanUp.after(() => postgres.close())
    world = await paidGateways(cleanUp, await postgres.createDatabase(), CONFIG, (res, { json }) => {
      if (String(json.messages[0]?.content) === 'slow') setTimeout(chatAnswer, 1000, res)
      else chatAnswer(res)
    })
    gateway = await world.start()
    for (const key of ACCOUNTS)
      assert.equal((await pay(gateway, { text: 'warm', ...keyed(key) }))?.status, 200)
    const beside = steadyLoad(gateway, { key: 'locked-0' }, sleep(1500), 50)
    alone = await steadyLoad(gateway, { key: 'steady' }, beside)
  })

  for (const [i, [what, statementsOf]] of Object.entries(LOCKS).entries()) {
    it(`hold up its own calls only: ${what}`, async (t) => {
      const heldUp = watchHeldUp(t)
      const key = `locked-${i}`
      const operator = new Client({ connectionString: world.databaseUrl })
      await operator.connect()
      t.after(() => operator.end())
      // Calls that hold a claim and money while the rows are locked.
      const slow = Array.from({ length: 3 }, () => pay(gateway, { text: 'slow', ...keyed(key) }))
      await until(() => askedSlow() === 3 * (i + 1), 'the slow calls')
      await operator.query('begin')
      for (const statement of statementsOf(key)) await operator.query(statement)
      const locked = sleep(LOCKED_MS)
      const [beside, own, ofKeys] = await Promise.all([
        steadyLoad(gateway, { key: 'steady' }, locked),
        steadyLoad(gateway, { key }, locked, 50),
        (async () => {
          const codes = new Set<number | undefined>()
          for (let j = 0; j < 50; j++)
            codes.add((await pay(gateway, { text: 'keyed', ...keyed('steady') }))?.status)
          return [...codes]
        })(),
        steadyLoad(gateway, { ...keyed(key) }, locked, 100),
      ])
      await operator.query('rollback')
      t.diagnostic(
        `${what}: alone ${JSON.stringify(alone)}, beside ${JSON.stringify(beside)}, own ${JSON.stringify(own)}`,
      )
      assert.deepEqual(ofKeys, [200])
      assertUndisturbed(beside, alone, heldUp())
      for (const fault of Object.keys(own.faults)) assert.match(fault, /billing_unavailable/)
      await Promise.all(slow)
      await untilAsync(
        async () => (await pay(gateway, { text: 'after', key }))?.status === 200,
        'its calls again',
      )
    })
  }

  const askedSlow = () => world.served().get('slow') ?? 0

  it('leave books without a fault', async () => {
    await shutDown([gateway])
    assert.deepEqual((await booksOf(world.databaseUrl)).violations, [])
  })
})
