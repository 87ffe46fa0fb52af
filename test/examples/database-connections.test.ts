import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { readSettings } from '../../examples/gateway/settings.ts'
import { openDurableStores } from '../../examples/gateway/stores.ts'
import { ConfigError, loadConfig } from '../../lib/index.ts'
import { postgresUrl } from '../stores/sql/postgres-database.ts'
import { WITHOUT_POSTGRES } from '../support/postgres-server.ts'

const CONFIG = {
  accounts: [{ id: 'a' }],
  keys: [{ id: 'k', account: 'a', secret: 'sk-k' }],
  models: [{ id: 'm', kind: 'chat' }],
  lines: [
    { id: 'l', provider: 'p', protocol: 'openai', baseUrl: 'http://127.0.0.1:1/v1', models: { m: 'u' } },
  ],
}
const SILENT = { info() {}, warn() {}, error() {} }

describe('the number of connections to Postgres', () => {
  it('is 24, or as the environment says', () => {
    const countIn = (DATABASE_CONNECTIONS?: string) =>
      readSettings({ DATABASE_CONNECTIONS }).databaseConnections
    assert.deepEqual([undefined, '', '12', '1000'].map(countIn), [24, 24, 12, 1000])
    for (const wrong of ['11', '1001', '24.5', 'many'])
      assert.throws(
        () => countIn(wrong),
        (error) => error instanceof ConfigError && /^DATABASE_CONNECTIONS: /.test(error.faults[0] ?? ''),
      )
  })

  for (const most of [12, 24, 50])
    it(`stays within ${most}, however much is asked for at a time`, { skip: WITHOUT_POSTGRES }, async (t) => {
      const config = loadConfig(CONFIG)
      const stores = await openDurableStores(await postgresUrl(), config, SILENT, most)
      t.after(() => stores.close())
      const all = Array.from({ length: 60 }, (_, i) => [
        stores.keys.find(`${i}`),
        stores.accounts.find('a'),
        stores.ledger.wallets(['account:a']),
        stores.calls.find('req_none'),
        stores.changes.list({ limit: 1 }),
        stores.answers?.drop(`${i}`),
        stores.usage.read({ from: 0, to: 86_400_000, groupBy: ['account'], limit: 1 }),
      ])
      await Promise.all(all.flat())
      const open = Object.values(stores.connections?.() ?? {}).map(({ used, idle }) => used + idle)
      const sum = open.reduce((count, each) => count + each, 0)
      assert.ok(sum <= most && sum >= most / 2, `${open}`)
    })
})
