import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { describe, it } from 'node:test'
import type { ErrorCode } from '../../../lib/core/errors/index.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import { dataOf, eventsOf, type Mode, modeName, STREAMS } from '../../support/exchange.ts'
import { startUpstream, stream } from '../../support/scripted-upstream.ts'
import { faultGateway, priceOf } from '../support/fault-gateway.ts'
import { NAMED, noticed } from '../support/fault-rows.ts'
import { closedBy } from '../support/line-states.ts'

const MODELS = ['chat', 'other']

interface Row {
  readonly what: string
  readonly breaks: (res: ServerResponse, mode: Mode) => void
  readonly timeouts?: Record<string, number>
  readonly code?: ErrorCode
}

const errorEvent =
  (error: object) =>
  (res: ServerResponse, { protocol }: Mode): void => {
    const data =
      protocol === 'openai'
        ? `data: ${JSON.stringify({ error })}\n\n`
        : `event: error\ndata: ${JSON.stringify({ type: 'error', error })}\n\n`
    res.end(data)
  }

/** The cause is the same for every error event: the line has begun an answer that it does not finish. */
const ERRORS = noticed(NAMED).map(
  ([what, status, error]): Row => ({
    what: `an error event: ${status} about ${what}`,
    breaks: errorEvent(error as object),
  }),
)

const ROWS: readonly Row[] = [
  { what: 'a reset', breaks: (res) => void res.socket?.resetAndDestroy() },
  { what: 'an end without finish', breaks: (res) => void res.end() },
  { what: 'a connection that closes', breaks: (res) => void res.socket?.end() },
  { what: 'an event that is no JSON', breaks: (res) => void res.end('data: {"choices"\n\n') },
  { what: 'the idle clock', breaks: () => {}, timeouts: { idleMs: 700 }, code: 'upstream_timeout' },
  {
    what: 'the total clock',
    breaks(res) {
      const timer = setInterval(() => res.write(': still here\n\n'), 20)
      res.on('close', () => clearInterval(timer))
    },
    timeouts: { totalMs: 1200 },
    code: 'upstream_timeout',
  },
  ...ERRORS,
]

/** The events of a stream up to and with its two words. */
function beginning(mode: Mode): string[] {
  const events = eventsOf(mode, ['Once', ' upon'])
  return events.slice(0, events.findIndex((event) => event.includes(' upon')) + 1)
}

describe('a fault of an upstream after its first output', async () => {
  const cleanUp = cleaningUp()
  const bad = await startUpstream()
  cleanUp.after(() => bad.close())
  const good = await startUpstream()
  cleanUp.after(() => good.close())

  for (const { what, breaks, timeouts = {}, code = 'upstream_error' } of ROWS) {
    for (const mode of STREAMS) {
      it(`${what}, ${modeName(mode)}: ${code} in the stream, charged as far as it came`, async (t) => {
        bad.requests.length = 0
        good.requests.length = 0
        bad.script = async (res) => {
          // So that the words have left before the end comes.
          await stream(res, beginning(mode), { paceMs: 5, end: false })
          breaks(res, mode)
        }
        const { protocol } = mode
        const gateway = await faultGateway(t, [bad.url, good.url], 1, { protocol, timeouts })
        const spent = { x: 0n, y: 0n }
        for (const account of ['x', 'y'] as const) {
          const got = await gateway.ask(account, mode)
          assert.deepEqual([got.status, got.broken], [200, true])
          assert.match(got.text, /Once[\s\S]* upon/)
          const events = dataOf(got.text)
          assert.equal(events.filter(({ error }) => error).length, 1)
          assert.equal(events.at(-1)?.request_id, got.requestId)
          const { error_code, outcome, routing, usage, billing } = await gateway.entry(got)
          assert.deepEqual([error_code, outcome], [code, 'interrupted'])
          assert.deepEqual(
            routing?.attempts.map((attempt) => [attempt.line, attempt.outcome]),
            [['line-0', code]],
          )
          assert.ok(usage && usage.output_tokens >= 2 && usage.output_tokens < 20, 'two words')
          spent[account] = priceOf(usage)
          assert.equal(billing?.charged, String(Number(spent[account]) / 1e9))
          const closed = account === 'x' ? ['x'] : ['x', 'y']
          assert.deepEqual(gateway.shut(), closedBy('model', MODELS, closed), `after ${account}`)
        }
        assert.deepEqual(gateway.resting(), [])
        assert.deepEqual([bad.requests.length, good.requests.length], [2, 0], 'nothing is sent again')
        assert.deepEqual(await gateway.spent(), spent)
      })
    }
  }
})
