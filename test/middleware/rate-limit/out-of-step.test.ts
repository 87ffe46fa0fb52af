import assert from 'node:assert/strict'
import { describe, it, mock } from 'node:test'
import { type LimitStore, MemoryLimitStore, PARDON_MS } from '../../../lib/middleware/rate-limit/index.ts'
import { startRedis, WITHOUT_REDIS } from '../../support/redis-server.ts'
import { demand, limit, WINDOW_MS } from './demands.ts'
import { RedisClock } from './redis-clock.ts'

const CALLERS = 20
const WINDOWS = 3
const LATENCY_MS = 40

/** Stores on the test's clock, each of which serves some of the requests. */
interface Stores {
  readonly stores: readonly LimitStore[]
  advance(ms: number): Promise<void> | void
  settled(): Promise<void> | void
}

interface Event {
  readonly at: number
  readonly caller: number
  /** A call that ends here, at the store that admitted it; undefined: the caller asks. */
  readonly ends?: LimitStore | undefined
}

/**
 * Callers of one key that begin at different times and whose calls run for different times; each sends one request after
 * the other, and after a refusal waits as long as it was told, in whole seconds.
 *
 * @returns admitted ÷ configured: by the time from the first window's begin to the last one's, and by windows.
 */
async function shareOfCallers(kind: 'rpm' | 'tpm', most: number, opened: Stores, runsMs: [number, number]) {
  let seed = 1
  const random = (least: number, bound: number) => {
    seed = (seed * 48_271) % 2_147_483_647
    return least + (seed % (bound - least))
  }
  const events: Event[] = Array.from({ length: CALLERS }, (_, caller) => ({
    at: random(0, runsMs[1]),
    caller,
  }))
  const begins: number[] = []
  const used: number[] = []
  let now = 0
  for (let asked = 0; begins.length <= WINDOWS; ) {
    events.sort((one, other) => one.at - other.at)
    const { at, caller, ends } = events.shift() as Event
    await opened.advance(at - now)
    now = at
    if (ends) {
      ends.ended?.('out-of-step')
      await opened.settled()
      events.push({ at: now + LATENCY_MS, caller })
      continue
    }
    const store = opened.stores[asked++ % opened.stores.length] as LimitStore
    const cost = kind === 'rpm' ? 1 : random(10, 31)
    const charge = limit(kind, 'out-of-step', most, cost)
    const { refusedBy, waitMs, counts } = await store.admit(demand([charge], { sender: 'out-of-step' }))
    if (refusedBy) {
      events.push({ at: now + Math.ceil(waitMs / 1000) * 1000 + LATENCY_MS, caller })
      continue
    }
    if (counts[0]?.used === cost) begins.push(now)
    used[begins.length - 1] = counts[0]?.used as number
    const runs = random(...runsMs)
    // What ran for less is not told to the store, unless it was admitted during a wait.
    if (runs >= PARDON_MS || waitMs > 0) events.push({ at: now + runs, caller, ends: store })
    else events.push({ at: now + runs + LATENCY_MS, caller })
  }
  const admitted = used.slice(0, WINDOWS).reduce((sum, each) => sum + each, 0)
  const windows = ((begins[WINDOWS] as number) - (begins[0] as number)) / WINDOW_MS
  return {
    ofTime: admitted / (most * windows),
    ofWindows: admitted / (most * WINDOWS),
    fullest: Math.max(...used),
  }
}

const inMemory = (): Stores & { close(): void } => {
  mock.timers.enable({ apis: ['Date', 'setTimeout'], now: Date.now() })
  return {
    stores: [new MemoryLimitStore()],
    advance: (ms) => mock.timers.tick(ms),
    settled() {},
    close: () => mock.timers.reset(),
  }
}

const onOneRedis = async () => {
  const clock = new RedisClock(await startRedis())
  return {
    stores: [clock.open().store, clock.open().store],
    advance: (ms: number) => clock.advance(ms),
    settled: () => clock.settled(),
    close: () => clock.close(),
  }
}

for (const [name, open, skip] of [
  ['memory', inMemory, false],
  ['two processes on one Redis', onOneRedis, WITHOUT_REDIS],
] as const)
  describe(`callers of one key that honour Retry-After out of step: ${name}`, { skip }, () => {
    for (const [kind, most, runsMs] of [
      ['rpm', 120, [200, 3000]],
      ['tpm', 2400, [200, 3000]],
      ['rpm', 60, [2000, 15_000]],
    ] as const)
      it(`get nearly all that a limit of ${most} ${kind} allows, with calls of ${runsMs.join(' to ')} ms`, async (t) => {
        const opened = await open()
        t.after(() => opened.close())
        const { ofTime, ofWindows, fullest } = await shareOfCallers(kind, most, opened, [...runsMs])
        assert.ok(fullest <= most, `${fullest} of ${most} in one window`)
        assert.ok(ofWindows >= 0.98, `${ofWindows} of the windows`)
        assert.ok(ofTime >= 0.98, `${ofTime} of the time`)
      })
  })

it('a caller that is faster at another process than the note of its last call prolongs nothing', {
  skip: WITHOUT_REDIS,
}, async (t) => {
  const clock = new RedisClock(await startRedis())
  t.after(() => clock.close())
  const [first, second] = [clock.open().store, clock.open().store]
  const ask = async () => (await second.admit(demand([limit('rpm', 's', 1)], { sender: 's' }))).waitMs
  await ask()
  await ask()
  await clock.advance(20_000)
  const prolonged = await ask()
  assert.ok(prolonged > 40_000 && prolonged <= 41_000, `${prolonged}`)
  await clock.advance(100)
  first.ended('s')
  await clock.settled()
  await clock.advance(39_900)
  assert.equal(await ask(), 0, 'is let through when the window is over')
  await ask()

  // It is taken back once, and not long after.
  await clock.advance(20_000)
  await ask()
  await clock.advance(300)
  first.ended('s')
  await clock.settled()
  const late = await ask()
  assert.ok(late > 40_000 && late <= 41_000, `${late}: pardoned, the one before is not`)
})
