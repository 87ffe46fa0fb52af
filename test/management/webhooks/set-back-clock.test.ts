import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import {
  type EndingKey,
  type WatchSource,
  WebhookSender,
  WebhookWatch,
} from '../../../lib/management/webhooks/index.ts'
import { openDatabase, SqlWebhookOutbox } from '../../../lib/stores/sql/index.ts'
import { DAY_MS, NOW } from '../../contracts/webhook-samples.ts'
import { until, untilAsync } from '../../support/until.ts'
import { eventsIn } from './events-in.ts'

const quiet = { info: () => {}, warn: () => {}, error: () => {} }

/** Watches that share an outbox and a clock, and the events that they have written. */
async function scene(t: TestContext, watchers: number, keys: readonly EndingKey[] = []) {
  const clock = { now: NOW }
  const db = await openDatabase('sqlite::memory:')
  const outbox = new SqlWebhookOutbox(db)
  const told = () => eventsIn(db)
  const source: WatchSource = {
    balances: async () => [],
    endingKeys: async (from, to) => keys.filter(({ expiresAt }) => expiresAt > from && expiresAt <= to),
  }
  const down = Array.from({ length: watchers }, () => new Set<string>())
  const rounds = down.map(() => 0)
  const watches = down.map((lines, i) => {
    const watch = new WebhookWatch({
      ...{ outbox, source, pollMs: 5, now: () => clock.now, logger: quiet },
      lines() {
        rounds[i] = Number(rounds[i]) + 1
        return ['a', 'b'].map((id) => ({ id, down: lines.has(id) }))
      },
    })
    t.after(() => watch.close())
    return watch
  })
  t.after(() => db.destroy())
  const looked = async () => {
    const before = [...rounds]
    await until(() => rounds.every((n, i) => n >= Number(before[i]) + 2), 'another look')
  }
  return { clock, told, down, watches, looked }
}

describe('a watch whose clock was ahead and is set back', () => {
  it('looks for keys that end as soon as before', async (t) => {
    const keys: EndingKey[] = []
    const { clock, told, looked } = await scene(t, 1, keys)
    clock.now += DAY_MS
    await looked()
    keys.push({ key: 'soon', account: 'acme', expiresAt: NOW + DAY_MS })
    clock.now = NOW
    await looked()
    assert.deepEqual(await told(), ['key.expiring key:soon'])
  })

  it('reports the outages of the ledger that follow, each once', async (t) => {
    const { clock, told, watches, looked } = await scene(t, 2)
    const outage = async () => {
      for (const watch of watches) watch.noteLedger(true)
      clock.now += 5000
      for (const watch of watches) watch.noteLedger(false)
      await looked()
    }
    clock.now += DAY_MS
    await outage()
    clock.now = NOW
    await outage()
    clock.now += 5000
    await outage()
    assert.deepEqual(await told(), ['ledger.away ledger', 'ledger.away ledger', 'ledger.away ledger'])
  })

  it('reports a line at once as up that it had reported as down', async (t) => {
    const { clock, told, down, looked } = await scene(t, 1)
    clock.now += DAY_MS
    down[0]?.add('a')
    await looked()
    clock.now = NOW
    down[0]?.delete('a')
    await looked()
    assert.deepEqual(await told(), ['line.down line:a', 'line.up line:a'])
  })

  it('reports again that a line is down, so that another process soon reports it as up if the first one ends', async (t) => {
    const { clock, told, down, watches, looked } = await scene(t, 2)
    clock.now += DAY_MS
    down[0]?.add('a')
    await looked()
    clock.now = NOW
    await looked()
    await watches[0]?.close()
    clock.now += 120_000
    await untilAsync(async () => (await told()).length === 2, 'up')
    assert.deepEqual(await told(), ['line.down line:a', 'line.up line:a'])
  })

  it('reports a line as up that a process which has ended reported as down, and no other line', async (t) => {
    const { clock, told, down, watches, looked } = await scene(t, 2)
    down[0]?.add('a')
    clock.now += DAY_MS
    await looked()
    await watches[0]?.close()
    clock.now = NOW
    down[1]?.add('b')
    await untilAsync(async () => (await told()).length === 3, 'up')
    assert.deepEqual((await told()).sort(), ['line.down line:a', 'line.down line:b', 'line.up line:a'])
  })
})

describe('a sender', () => {
  it('gives a receiver no more time than a claim on its delivery may last', async (t) => {
    const db = await openDatabase('sqlite::memory:')
    t.after(() => db.destroy())
    const options = { outbox: new SqlWebhookOutbox(db), logger: quiet }
    assert.throws(
      () => new WebhookSender({ ...options, timeoutMs: 300_001 }),
      /"timeoutMs" must be .*5 minutes/,
    )
  })
})

describe('a sender whose clock was ahead and is set back', () => {
  it('deletes old deliveries, and reads how long the oldest waits, as often as before', async (t) => {
    const db = await openDatabase('sqlite::memory:')
    const outbox = new SqlWebhookOutbox(db)
    let now = NOW + DAY_MS
    const pruned: number[] = []
    const looked: number[] = []
    t.mock.method(outbox, 'prune', async (before: number) => {
      pruned.push(before)
      return 0
    })
    t.mock.method(outbox, 'oldestWaiting', async () => {
      looked.push(now)
      return null
    })
    const sender = new WebhookSender({
      outbox,
      pollMs: 5,
      keepDeliveriesMs: 1,
      now: () => now,
      logger: quiet,
    })
    t.after(() => sender.close().then(() => db.destroy()))
    await until(() => pruned.length === 1 && looked.length === 1, 'the first round')
    now = NOW
    await until(() => pruned.length === 2 && looked.length === 2, 'a round after that')
    assert.deepEqual(
      [pruned, looked],
      [
        [NOW + DAY_MS - 1, NOW - 1],
        [NOW + DAY_MS, NOW],
      ],
    )
  })
})
