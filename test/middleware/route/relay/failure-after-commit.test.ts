import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { describe, it } from 'node:test'
import type { ErrorCode } from '../../../../lib/core/errors/index.ts'
import { cleaningUp } from '../../../support/clean-up.ts'
import {
  dataOf,
  eventsOf,
  exchange,
  gatewayFor,
  type Mode,
  modeName,
  occurrences,
  STREAMS,
} from '../../../support/exchange.ts'
import { SECRET } from '../../../support/outcome-row.ts'
import { startUpstream, stream } from '../../../support/scripted-upstream.ts'

interface Row {
  does: string
  /** The behaviour of the line after its first two words. */
  breaks: (res: ServerResponse, mode: Mode) => void
  timeouts?: Record<string, number>
  code: ErrorCode
  timeoutPhase?: string
}

const chatError = { error: { message: SECRET, type: 'server_error' } }
const ROWS: Row[] = [
  { does: 'resets the connection', breaks: (res) => res.socket?.resetAndDestroy(), code: 'upstream_error' },
  { does: 'ends without a finish reason', breaks: (res) => res.end(), code: 'upstream_error' },
  { does: 'closes the connection', breaks: (res) => res.socket?.end(), code: 'upstream_error' },
  {
    does: 'sends an error event',
    breaks: (res, { protocol }) =>
      res.write(
        protocol === 'openai'
          ? `data: ${JSON.stringify(chatError)}\n\n`
          : `event: error\ndata: ${JSON.stringify({ type: 'error', ...chatError })}\n\n`,
      ),
    code: 'upstream_error',
  },
  {
    does: 'sends an event that is not JSON',
    breaks: (res) => res.write(`data: {${SECRET}\n\n`),
    code: 'upstream_error',
  },
  {
    does: 'falls silent',
    breaks: () => {},
    timeouts: { idleMs: 1000 },
    code: 'upstream_timeout',
    timeoutPhase: 'idle',
  },
  {
    does: 'does not come to an end',
    breaks: (res, mode) => {
      const word = eventsOf(mode, ['more']).find((event) => event.includes('more'))
      const timer = setInterval(() => res.write(word), 10)
      res.on('close', () => clearInterval(timer))
    },
    timeouts: { totalMs: 2000 },
    code: 'upstream_timeout',
    timeoutPhase: 'total',
  },
]

/** The events of a stream up to and with its two words. */
function beginning(mode: Mode): string[] {
  const events = eventsOf(mode, ['Once', ' upon'])
  return events.slice(0, events.findIndex((event) => event.includes(' upon')) + 1)
}

describe('a line that fails behind the first output', async () => {
  const cleanUp = cleaningUp()
  const upstream = await startUpstream()
  cleanUp.after(() => upstream.close())
  const other = await startUpstream()
  cleanUp.after(() => other.close())

  for (const { does, breaks, timeouts = {}, code, timeoutPhase } of ROWS) {
    for (const mode of STREAMS) {
      it(`${does}: an error in the stream, and no other line is asked (${modeName(mode)})`, async (t) => {
        upstream.requests.length = 0
        upstream.script = async (res) => {
          // Two turns of the event loop, so that the words have left before the end comes.
          await stream(res, beginning(mode), { paceMs: 5, end: false })
          breaks(res, mode)
        }
        const { protocol } = mode
        const gateway = await gatewayFor(t, {
          lines: [
            { url: upstream.url, protocol, timeouts, circuit: { minimumCalls: 1, errorPercent: 100 } },
            { url: other.url, protocol, timeouts },
          ],
        })
        const got = await exchange(gateway, mode)
        assert.equal(got.status, 200)
        assert.equal(got.broken, true, 'a truncated answer is not taken for a whole one')
        assert.match(got.text, /Once[\s\S]* upon/)
        assert.doesNotMatch(got.text, new RegExp(SECRET))
        assert.doesNotMatch(got.text, /\[DONE\]|message_stop/)
        const last = dataOf(got.text).at(-1)
        assert.ok(last?.error)
        assert.equal(last.request_id, got.requestId)
        if (protocol === 'openai') {
          assert.equal(last.error.code, code)
          assert.equal(occurrences(got.text, '"error"'), 1)
        } else {
          assert.equal(last.type, 'error')
          assert.equal(occurrences(got.text, 'event: error'), 1)
          assert.equal(last.error.type, code === 'upstream_timeout' ? 'timeout_error' : 'api_error')
        }
        assert.equal(upstream.requests.length, 1)
        assert.equal(other.requests.length, 0)

        const entry = await gateway.entry(got.requestId)
        assert.deepEqual([entry.outcome, entry.status, entry.error_code], ['interrupted', 200, code])
        assert.equal(entry.usage?.source, 'estimated')
        assert.ok(entry.usage && entry.usage.output_tokens > 0, 'what was produced is counted')
        const attempts = entry.routing?.attempts.map(({ outcome, upstream_status, timeout_phase }) => [
          outcome,
          upstream_status,
          timeout_phase,
        ])
        assert.deepEqual(attempts, [[code, 200, timeoutPhase ?? null]])
        const [line] = gateway.config.catalog.lines
        assert.ok(line)
        assert.equal(gateway.lines.status(line).circuit, 'open')
        assert.equal(gateway.openCalls.size, 0)
      })
    }
  }
})
