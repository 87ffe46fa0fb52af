import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { databaseUrl } from '../../stores/sql/support/temporary-database.ts'
import { chatAnswer, chatEvents, stream } from '../../support/scripted-upstream.ts'
import { until } from '../../support/until.ts'
import { paidGateways, pay, sawEnd } from './paid-gateways.ts'

const PAUSED_MS = 19_000
/** Shorter than the pause, and longer than what a busy machine takes for an answer. */
const CLOCK_MS = 16_000
const LONG = 60_000
const WORDS = Array.from({ length: 50 }, (_, i) => `word ${i} ${'x'.repeat(2000)}`)
const LARGE = 'x'.repeat(3_000_000)

interface Row {
  readonly what: string
  readonly stream?: boolean
  /** Sends what comes before the pause. */
  before?(res: ServerResponse): void
  /** Sends the rest, while the gateway stands still. */
  rest(res: ServerResponse): unknown
}

const ANSWERS: readonly Row[] = [
  { what: 'a whole answer', rest: (res) => chatAnswer(res) },
  { what: 'a whole answer of megabytes', rest: (res) => chatAnswer(res, LARGE) },
  { what: 'a stream', stream: true, rest: (res) => stream(res, chatEvents(WORDS)) },
  {
    what: 'the rest of a stream',
    stream: true,
    before: (res) => void stream(res, chatEvents(WORDS).slice(0, 3), { end: false }),
    rest(res) {
      for (const event of chatEvents(WORDS).slice(3)) res.write(event)
      res.end()
    },
  },
]

const CLOCKS = {
  first_byte: { firstByteMs: CLOCK_MS, idleMs: LONG, totalMs: LONG },
  idle: { firstByteMs: LONG, idleMs: CLOCK_MS, totalMs: LONG },
  total: { firstByteMs: LONG, idleMs: LONG, totalMs: CLOCK_MS },
} as const

describe('an answer that came while the process was paused', { concurrency: true, timeout: 120_000 }, () => {
  for (const [clock, timeouts] of Object.entries(CLOCKS)) {
    it(`is in time for the ${clock} clock`, async (t) => {
      const waiting = new Map<string, ServerResponse>()
      const world = await paidGateways(
        t,
        await databaseUrl(t),
        {
          accounts: [{ id: 'acme', balance: '1000' }],
          keys: [{ id: 'k', account: 'acme' }],
          price: { perRequest: '0.01' },
          timeouts: { connectMs: 20_000, ...timeouts },
        },
        (res, { json }) => {
          const text = String(json.messages[0]?.content)
          if (text === 'warm') return chatAnswer(res)
          ANSWERS.find(({ what }) => what === text)?.before?.(res)
          waiting.set(text, res)
        },
      )
      const gateway = await world.start()
      const keyed = { key: 'k', idempotencyKey: 'warm' }
      assert.equal((await pay(gateway, { text: 'warm', ...keyed }))?.status, 200)

      const calls = ANSWERS.map((row) => ({
        text: row.what,
        key: 'k',
        ...(row.stream && { stream: true }),
        idempotencyKey: row.what,
      }))
      const answers = calls.map((call) => pay(gateway, call))
      await until(() => waiting.size === ANSWERS.length, 'the calls')
      gateway.kill('SIGSTOP')
      for (const { what, rest } of ANSWERS) void rest(waiting.get(what)!)
      await sleep(PAUSED_MS)
      gateway.kill('SIGCONT')
      for (const [i, call] of calls.entries()) {
        const answer = await answers[i]
        assert.ok(sawEnd(call, answer), `${call.text}: ${answer?.status} ${answer?.text.slice(-300)}`)
      }
      const faults = gateway.logged.filter(({ msg }) => /away|timeout/.test(msg))
      assert.deepEqual(faults, [])
    })
  }
})
