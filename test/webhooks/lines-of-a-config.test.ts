import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { LineWatch } from '../../lib/webhooks/line-watch.ts'
import { MemoryWebhooks } from '../../lib/webhooks/memory-webhooks.ts'
import type { WebhookEvent } from '../../lib/webhooks/webhook-event.ts'

/** Looks at a line that is up, down or not in the config, and at another one beside it, every second. */
function watching() {
  const told: string[] = []
  class Telling extends MemoryWebhooks {
    override async record(events: readonly WebhookEvent[]): Promise<void> {
      for (const { type, subject } of events) told.push(`${type} ${subject}`)
    }
  }
  let line: 'up' | 'down' | 'gone' = 'up'
  const beside = { id: 'beside', down: false }
  const lines = () => (line === 'gone' ? [beside] : [{ id: 'a', down: line === 'down' }, beside])
  const watch = new LineWatch(new Telling(), lines)
  let now = 1_800_000_000_000
  const goesOn = async (as: typeof line, seconds: number): Promise<readonly string[]> => {
    line = as
    for (let i = 0; i < seconds; i++) {
      now += 1000
      await watch.check(now)
    }
    return told.splice(0)
  }
  return goesOn
}

describe('a line that leaves the config while it is down', () => {
  it('is told to be down again if it comes back so, once it was forgotten', async () => {
    const goesOn = watching()
    assert.deepEqual(await goesOn('down', 3), ['line.down line:a'])
    assert.deepEqual(await goesOn('gone', 120), [])
    assert.deepEqual(await goesOn('down', 120), ['line.down line:a'])
    assert.deepEqual(await goesOn('up', 3), ['line.up line:a'])
  })

  it('is told to be up if it comes back so before, and not to be down again', async () => {
    const goesOn = watching()
    await goesOn('down', 3)
    await goesOn('gone', 5)
    assert.deepEqual(await goesOn('down', 30), [])
    await goesOn('gone', 5)
    assert.deepEqual(await goesOn('up', 120), ['line.up line:a'])
  })
})
