import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { readSettings } from '../../examples/gateway/config/environment.ts'
import { openDurableStores } from '../../examples/gateway/stores/stores.ts'
import { ConfigError } from '../../lib/index.ts'
import type { SettlementResult } from '../../lib/ledger/index.ts'
import { SqlLedger } from '../../lib/stores/sql/index.ts'
import { postgresUrl } from '../stores/sql/support/postgres-database.ts'
import { createGateway, loadConfig } from '../support/any-config.ts'
import { assembledGateway } from '../support/assembled-gateway.ts'
import { cleaningUp } from '../support/clean-up.ts'
import { WITHOUT_POSTGRES } from '../support/postgres-server.ts'
import { chatAnswer, startUpstream } from '../support/scripted-upstream.ts'

const CONFIG = {
  accounts: [{ id: 'a' }],
  keys: [{ id: 'k', account: 'a', secret: 'sk-k' }],
  models: [{ id: 'm', kind: 'chat' }],
  lines: [
    { id: 'l', provider: 'p', protocol: 'openai', baseUrl: 'http://127.0.0.1:1/v1', models: { m: 'u' } },
  ],
}
/** Longer than without the option: a busy machine makes a wait longer, and none shorter. */
const CONFIRM_MS = 2000
const SILENT = { info() {}, warn() {}, error() {} }

describe('how long calls wait for the ledger', () => {
  const cleanUp = cleaningUp()

  it('is as the environment or the program says', async () => {
    const timesIn = (env: NodeJS.ProcessEnv) => {
      const { ledgerStallMs, ledgerConfirmMs } = readSettings(env)
      return [ledgerStallMs, ledgerConfirmMs]
    }
    assert.deepEqual(timesIn({}), [undefined, undefined])
    assert.deepEqual(timesIn({ LEDGER_STALL_MS: '', LEDGER_CONFIRM_MS: '4000' }), [undefined, 4000])
    const isFault = (...names: string[]) => {
      return (error: unknown) =>
        error instanceof ConfigError &&
        error.faults.length === names.length &&
        names.every((name, i) =>
          error.faults[i]?.includes(`${name} must be whole milliseconds from 1 to 60000`),
        )
    }
    for (const wrong of ['0', '1.5', '60001', 'long']) {
      const env = { LEDGER_STALL_MS: wrong, LEDGER_CONFIRM_MS: wrong }
      assert.throws(() => readSettings(env), isFault('LEDGER_STALL_MS:', 'LEDGER_CONFIRM_MS:'))
    }
    const wrong = { databaseUrl: 'memory:', ledgerStallMs: 0, ledgerConfirmMs: 0.5 }
    await assert.rejects(createGateway(CONFIG, wrong), isFault('ledgerStallMs', 'ledgerConfirmMs'))
  })

  it('is how long an answer waits for its charge', async (t) => {
    const upstream = await startUpstream((res) => chatAnswer(res))
    cleanUp.after(() => upstream.close())
    const line = { ...CONFIG.lines[0], baseUrl: `${upstream.url}/v1` }
    const price = { perRequest: '1' }
    const config = { models: [{ id: 'm', kind: 'chat', price }], lines: [line] }
    const { send } = await assembledGateway(cleanUp, config, { ledgerConfirmMs: CONFIRM_MS })
    const written = Promise.withResolvers<readonly SettlementResult[]>()
    t.mock.method(SqlLedger.prototype, 'settle', () => written.promise)
    const asked = performance.now()
    const response = await send('/v1/chat/completions', {
      model: 'm',
      messages: [{ role: 'user', content: 'Hi' }],
    })
    const { error } = (await response.json()) as { error: { code: string } }
    assert.equal(error.code, 'billing_unavailable')
    assert.ok(performance.now() - asked >= CONFIRM_MS)
    t.mock.restoreAll()
    written.resolve(['written'])
  })
})

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
      // One that has waited too long for its connection is refused, which a busy machine may bring about.
      for (const asked of await Promise.allSettled(all.flat()))
        if (asked.status === 'rejected')
          assert.match(`${asked.reason}`, /timeout exceeded when trying to connect/)
      const open = Object.values(stores.connections?.() ?? {}).map(({ used, idle }) => used + idle)
      const sum = open.reduce((count, each) => count + each, 0)
      assert.ok(sum <= most && sum >= most / 2, `${open}`)
    })
})
