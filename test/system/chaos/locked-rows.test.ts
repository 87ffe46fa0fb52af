import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Client } from 'pg'
import { cleaningUp } from '../../support/clean-up.ts'
import { watchHeldUp } from '../../support/held-up.ts'
import { type PostgresServer, startPostgres, WITHOUT_POSTGRES } from '../../support/postgres-server.ts'
import { chatAnswer } from '../../support/scripted-upstream.ts'
import { booksOf, paidGateways, pay, shutDown } from './paid-gateways.ts'
import { assertUndisturbed, steadyLoad } from './steady-load.ts'

const LOCKED_MS = 3500

const CONFIG = {
  accounts: [
    { id: 'locked', balance: '1000' },
    { id: 'steady', balance: '1000' },
  ],
  keys: [
    { id: 'l', account: 'locked', quota: '500' },
    { id: 's', account: 'steady', quota: '500' },
  ],
  price: { perRequest: '0.01' },
}

/** The rows that an operator may lock for a while: those of one account, of each kind that calls write. */
const LOCKS: Readonly<Record<string, readonly string[]>> = {
  'the wallet of the account': ["select 1 from wallets where id = 'account:locked' for update"],
  'the wallet of a key': ["select 1 from wallets where id = 'key:l' for update"],
  leases: ["select 1 from leases where wallet in ('account:locked', 'key:l') for update"],
  'records of keys': [
    "select 1 from idempotency where owner in (select id from calls where account = 'locked') or state = 'running' for update",
  ],
  'entries of calls': ["select 1 from calls where account = 'locked' for update"],
  'usage of hours and days': ["select 1 from usage where account = 'locked' for update"],
  'all of them': [
    "select 1 from wallets where id in ('account:locked', 'key:l') for update",
    "select 1 from leases where wallet in ('account:locked', 'key:l') for update",
    "select 1 from calls where account = 'locked' for update",
  ],
}

describe('rows of one account that somebody has locked', { skip: WITHOUT_POSTGRES, timeout: 240_000 }, () => {
  let postgres: PostgresServer
  const cleanUp = cleaningUp()
  before(async () => {
    postgres = await startPostgres()
    cleanUp.after(() => postgres.close())
  })

  for (const [what, statements] of Object.entries(LOCKS)) {
    it(`hold up its own calls only: ${what}`, async (t) => {
      const heldUp = watchHeldUp(t)
      const url = await postgres.createDatabase()
      const world = await paidGateways(t, url, CONFIG, (res, { json }) => {
        if (String(json.messages[0]?.content) === 'slow') setTimeout(chatAnswer, 1000, res)
        else chatAnswer(res)
      })
      const gateway = await world.start()
      let made = 0
      const keyed = (key: string) => ({ key, idempotencyKey: `${key}-${++made}` })
      for (const key of ['l', 's'])
        assert.equal((await pay(gateway, { text: 'warm', ...keyed(key) }))?.status, 200)
      const alone = await steadyLoad(
        gateway,
        { key: 's' },
        steadyLoad(gateway, { key: 'l' }, sleep(1500), 50),
      )

      const operator = new Client({ connectionString: url })
      await operator.connect()
      t.after(() => operator.end())
      // Calls that hold a claim and money while the rows are locked.
      const slow = Array.from({ length: 3 }, () => pay(gateway, { text: 'slow', ...keyed('l') }))
      await sleep(300)
      await operator.query('begin')
      for (const statement of statements) await operator.query(statement)
      const locked = sleep(LOCKED_MS)
      const [beside, own, ofKeys] = await Promise.all([
        steadyLoad(gateway, { key: 's' }, locked),
        steadyLoad(gateway, { key: 'l' }, locked, 50),
        (async () => {
          const codes = new Set<number | undefined>()
          for (let i = 0; i < 50; i++)
            codes.add((await pay(gateway, { text: 'keyed', ...keyed('s') }))?.status)
          return [...codes]
        })(),
        steadyLoad(gateway, { ...keyed('l') }, locked, 100),
      ])
      await operator.query('rollback')
      t.diagnostic(
        `${what}: alone ${JSON.stringify(alone)}, beside ${JSON.stringify(beside)}, own ${JSON.stringify(own)}`,
      )
      assert.deepEqual(ofKeys, [200])
      assertUndisturbed(beside, alone, heldUp())
      for (const fault of Object.keys(own.faults)) assert.match(fault, /billing_unavailable/)
      await Promise.all(slow)
      await sleep(1500)
      assert.equal((await pay(gateway, { text: 'after', key: 'l' }))?.status, 200)
      await shutDown([gateway])
      assert.deepEqual((await booksOf(url)).violations, [])
    })
  }
})
