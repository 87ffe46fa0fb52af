import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { WebhookWatch } from '../../../lib/management/webhooks/index.ts'
import { openDatabase, SqlWebhookOutbox } from '../../../lib/stores/sql/index.ts'
import { untilAsync } from '../../support/until.ts'
import { eventsIn } from './events-in.ts'

const STEP_MS = 5000

/** Watches a line that is up, down or not in the config, and another one beside it. */
async function watching(t: TestContext) {
  let line: 'up' | 'down' | 'gone' = 'up'
  let now = 1_800_000_000_000
  let rounds = 0
  let seen = 0
  const db = await openDatabase('sqlite::memory:')
  t.after(() => db.destroy())
  const watch = new WebhookWatch({
    outbox: new SqlWebhookOutbox(db),
    lines() {
      rounds++
      const beside = { id: 'beside', down: false }
      return line === 'gone' ? [beside] : [{ id: 'a', down: line === 'down' }, beside]
    },
    pollMs: 1,
    now: () => now,
  })
  t.after(() => watch.close())
  return async function goesOn(as: typeof line, seconds: number): Promise<readonly string[]> {
    line = as
    for (const end = now + seconds * 1000; now < end; ) {
      now = Math.min(end, now + STEP_MS)
      const before = rounds
      // The first round may have begun before; the third begins once the second is over.
      await untilAsync(async () => rounds >= before + 3, 'a round')
    }
    const told = await eventsIn(db)
    const fresh = told.slice(seen)
    seen = told.length
    return fresh
  }
}

describe('a line that leaves the config while it is down', () => {
  it('is reported down again if it comes back so, once it was forgotten', async (t) => {
    const goesOn = await watching(t)
    assert.deepEqual(await goesOn('down', 3), ['line.down line:a'])
    assert.deepEqual(await goesOn('gone', 120), [])
    assert.deepEqual(await goesOn('down', 120), ['line.down line:a'])
    assert.deepEqual(await goesOn('up', 3), ['line.up line:a'])
  })

  it('is reported up if it comes back so before, and not down again', async (t) => {
    const goesOn = await watching(t)
    await goesOn('down', 3)
    await goesOn('gone', 5)
    assert.deepEqual(await goesOn('down', 30), [])
    await goesOn('gone', 5)
    assert.deepEqual(await goesOn('up', 120), ['line.up line:a'])
  })
})
