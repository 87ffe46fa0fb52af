import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { Client } from 'pg'
import { cleaningUp } from '../../support/clean-up.ts'
import { type PostgresServer, startPostgres, WITHOUT_POSTGRES } from '../../support/postgres-server.ts'
import { chatAnswer } from '../../support/scripted-upstream.ts'
import { untilAsync } from '../../support/until.ts'
import { booksOf, paidGateways, pay, shutDown } from './paid-gateways.ts'

const CONFIG = {
  accounts: [{ id: 'acme', balance: '1000' }],
  keys: [{ id: 'k', account: 'acme', quota: '500' }],
  price: { perRequest: '0.01' },
}
const CALLS = 20

/** The lock modes of maintenance: of `create index`, which lets readers through, and of `vacuum full`, which does not. */
const MODES = ['share', 'access exclusive'] as const

describe('tables of the call log that another connection has locked', {
  skip: WITHOUT_POSTGRES,
  timeout: 240_000,
}, () => {
  let postgres: PostgresServer
  const cleanUp = cleaningUp()
  before(async () => {
    postgres = await startPostgres()
    cleanUp.after(() => postgres.close())
  })

  for (const table of ['call_labels', 'calls', 'calls, call_labels'])
    for (const mode of MODES)
      it(`hold up no charge, and have all entries later: ${table} in ${mode} mode`, async (t) => {
        const url = await postgres.createDatabase()
        const world = await paidGateways(t, url, CONFIG, (res) => chatAnswer(res))
        const gateway = await world.start()
        assert.equal((await pay(gateway, { text: 'warm', key: 'k' }))?.status, 200)
        const operator = new Client({ connectionString: url })
        await operator.connect()
        t.after(() => operator.end())
        await operator.query(`begin; lock table ${table} in ${mode} mode`)
        const statuses: (number | undefined)[] = []
        for (let i = 0; i < CALLS; i++) {
          const keyed = i % 4 === 0 ? { idempotencyKey: `key-${i}` } : {}
          statuses.push((await pay(gateway, { text: `call ${i}`, key: 'k', ...keyed }))?.status)
        }
        assert.deepEqual([...new Set(statuses)], [200])
        const charges = await operator.query('select count(*)::int as count from charges')
        assert.equal(charges.rows[0]?.count, CALLS + 1, 'while it was locked')
        await operator.query('commit')
        await untilAsync(async () => {
          const { rows } = await operator.query(
            `select count(*)::int as count from calls join charges on charges.request_id = calls.id
              where exists (select 1 from call_labels where call_labels.id = calls.id)`,
          )
          return rows[0]?.count === CALLS + 1
        }, 'the log has every call')
        await shutDown([gateway])
        const books = await booksOf(url)
        assert.deepEqual(books.violations, [])
      })
})
