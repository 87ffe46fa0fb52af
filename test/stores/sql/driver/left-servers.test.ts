import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { openDatabase, SqlLedger } from '../../../../lib/stores/sql/index.ts'
import { figures } from '../../../contracts/ledger-money.ts'
import { startPostgres, WITHOUT_POSTGRES } from '../../../support/postgres-server.ts'
import { untilAsync } from '../../../support/until.ts'
import { postgresUrl } from '../support/postgres-database.ts'
import { PATIENT } from '../support/temporary-database.ts'

describe('of several servers, one that takes no more writes', { skip: WITHOUT_POSTGRES }, () => {
  it('is left for the next, though it is no standby and its connections stand', async (t) => {
    const next = new URL(await postgresUrl())
    const name = next.pathname.slice(1)
    const fenced = await startPostgres()
    t.after(() => fenced.close())
    await fenced.query(`create database ${name}`)
    const url = `postgres://postgres@127.0.0.1:${fenced.port},${next.host}/${name}`
    const db = await openDatabase(url, { ...PATIENT, poolSize: 2 })
    t.after(() => db.destroy())
    const ledger = new SqlLedger(db)
    await ledger.deposit('acme', 5n, 'opening', 1)

    await fenced.query('alter system set default_transaction_read_only = on')
    await fenced.query('select pg_reload_conf()')
    await untilAsync(async () => {
      const [row] = await fenced.query('show default_transaction_read_only')
      return row?.default_transaction_read_only === 'on'
    }, 'the setting')
    await assert.rejects(ledger.deposit('acme', 7n, 'first', 2), { code: '25006' })
    assert.equal(await ledger.deposit('acme', 7n, 'first', 2), 'deposited')
    assert.deepEqual(await figures(ledger, 'acme'), [7n, 0n, 0n, 0n])
  })
})
