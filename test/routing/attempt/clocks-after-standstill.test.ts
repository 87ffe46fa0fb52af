import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { Exchange } from '../../../lib/routing/attempt/exchange.ts'

const TIMEOUTS = { connectMs: 60_000, firstByteMs: 60_000, idleMs: 60_000, totalMs: 1000 }
const START = 5000

/** An exchange whose answer has begun, and what its clocks said. */
class Begun extends Exchange {
  readonly timeouts: unknown[] = []

  constructor() {
    const line = { id: 'one', protocol: 'openai', provider: 'p' }
    super(
      { line, upstreamModel: 'u', state: undefined } as never,
      TIMEOUTS as never,
      Number.POSITIVE_INFINITY,
    )
    this.stopClocks()
    this.noteConnected()
  }

  abandon(): void {}

  protected breakOff({ timeoutPhase }: { timeoutPhase?: unknown }): void {
    this.timeouts.push(timeoutPhase)
  }
}

function stopTime(t: TestContext): void {
  t.mock.method(performance, 'now', () => START)
}

for (const [stoodStillMs, more] of [
  [3000, 3000],
  [60_000, 5000],
] as const)
  test(`an answer that still comes after ${stoodStillMs} ms without this process has ${more} ms beyond its total clock`, (t) => {
    stopTime(t)
    const exchange = new Begun()
    const wokenAt = START + 1000 + stoodStillMs
    exchange.noteProgress()
    exchange.checkTimeouts(wokenAt, stoodStillMs)
    exchange.noteProgress()
    exchange.checkTimeouts(wokenAt + more - 1, 0)
    assert.deepEqual(exchange.timeouts, [])
    exchange.noteProgress()
    exchange.checkTimeouts(wokenAt + more, 0)
    assert.deepEqual(exchange.timeouts, ['total'])
  })

test('an answer without any data after a standstill, or without a standstill, has no additional time', (t) => {
  stopTime(t)
  const silent = new Begun()
  silent.checkTimeouts(START + 4000, 3000)
  assert.deepEqual(silent.timeouts, ['total'])

  const coming = new Begun()
  coming.noteProgress()
  coming.checkTimeouts(START + 1000, 0)
  assert.deepEqual(coming.timeouts, ['total'])
})
