import assert from 'node:assert/strict'
import { it } from 'node:test'
import { sql } from 'kysely'
import { openDurableStores } from '../../examples/gateway/stores/stores.ts'
import { databaseUrl } from '../stores/sql/support/temporary-database.ts'
import { loadConfig } from '../support/any-config.ts'

const SILENT = { info() {}, warn() {}, error() {} }
const CHARGES = 50_000

it('a check of the ledger in SQLite holds up no search of the call log', async (t) => {
  const line = { id: 'l', provider: 'p', protocol: 'openai', baseUrl: 'http://127.0.0.1:9/v1' }
  const models = [{ id: 'm', kind: 'chat' }]
  const config = loadConfig({ accounts: [], keys: [], models, lines: [{ ...line, models: { m: 'u' } }] })
  const stores = await openDurableStores(await databaseUrl(t), config, SILENT, 24)
  t.after(() => stores.close())
  assert.ok(stores.database)
  await sql`with recursive numbers(n) as (select 1 union all select n + 1 from numbers where n < ${CHARGES})
    insert into charges (request_id, account, amount, at, usage)
    select 'req_' || printf('%026d', n), 'a', 1, 1, '{}' from numbers`.execute(stores.database)
  // The first search also starts what searches run in.
  await stores.calls.list({ limit: 1 })
  let isChecked = false
  const check = stores.ledger.check().then((checked) => {
    isChecked = true
    return checked
  })
  await stores.calls.list({ limit: 1 })
  assert.equal(isChecked, false)
  assert.equal((await check).charges, CHARGES)
})
