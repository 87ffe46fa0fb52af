import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { keptUntilRestart, needsRestart } from '../../examples/gateway/config/reload.ts'
import { loadConfig } from '../support/any-config.ts'

const LINE = {
  id: 'l',
  provider: 'p',
  protocol: 'openai',
  baseUrl: 'http://127.0.0.1:1/v1',
  models: { m: 'u' },
}
const BARE = { models: [{ id: 'm', kind: 'chat' }], lines: [LINE] }
/** Two other values than the default of each member that needs a restart. */
const VALUES: Readonly<Record<string, readonly [object, object]>> = {
  region: [{ region: 'a' }, { region: 'b' }],
  bodyLimitBytes: [{ bodyLimitBytes: 5000 }, { bodyLimitBytes: 6000 }],
  bodyBudgetBytes: [{ bodyBudgetBytes: 3e7 }, { bodyBudgetBytes: 4e7 }],
  metrics: [{ metrics: { labels: ['key'] } }, { metrics: { labels: ['account'] } }],
  lookupsPerMinute: [{ lookupsPerMinute: 5 }, { lookupsPerMinute: 6 }],
  onStoreError: [{ onStoreError: 'refuse' }, {}],
  onLedgerAway: [{ onLedgerAway: 'deliver' }, {}],
  trustProxy: [{ trustProxy: 1 }, { trustProxy: 2 }],
  cors: [{ cors: { origins: ['*'] } }, { cors: { origins: ['https://a.example'] } }],
  'retention.export': [
    { retention: { export: { to: 'file:a' }, calls: '1d' } },
    { retention: { export: { to: 'file:b' } } },
  ],
}

describe('a worker that replaces another after a change of the config', () => {
  for (const [member, [a, b]] of Object.entries(VALUES))
    for (const [started, next] of [
      [a, b],
      [a, {}],
      [{}, a],
    ] as const)
      it(`has the member of the others: ${member}, ${JSON.stringify(started)}, ${JSON.stringify(next)}`, () => {
        const before = { ...BARE, ...started }
        const after = { ...BARE, routing: { maxAttempts: 2 }, ...next }
        assert.deepEqual(needsRestart(loadConfig(before), loadConfig(after)), [member])
        const kept = loadConfig(keptUntilRestart(before, after))
        assert.deepEqual(needsRestart(loadConfig(before), kept), [])
        assert.equal(kept.routing.maxAttempts, 2)
        assert.equal(kept.retention.calls, loadConfig(after).retention.calls)
      })
})
