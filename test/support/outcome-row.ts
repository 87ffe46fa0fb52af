import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { before, describe, it } from 'node:test'
import type { TimeoutPhase } from '../../lib/core/call/index.ts'
import { ERROR_CODES, type ErrorCode } from '../../lib/core/errors/index.ts'
import { cleaningUp } from './clean-up.ts'
import { answer, type Exchange, exchange, MODES, type Mode, modeName, saidTo } from './exchange.ts'
import { startGateway, type TestGateway } from './gateway.ts'
import { type ScriptedUpstream, startUpstream } from './scripted-upstream.ts'

/** Stands in everything a failing upstream says; it must never reach a caller. */
export const SECRET = 'UPSTREAM-SECRET-TEXT'

/** One thing a line can do, and what has to follow from it. */
export interface OutcomeRow {
  readonly does: string
  /** The behaviour of the line. Defaults to answering as it should. */
  readonly script?: (res: ServerResponse, mode: Mode) => void | Promise<void>
  /** Members of the line's config; `url` puts the line elsewhere. */
  readonly line?: Record<string, unknown>
  /** Defaults to all four. */
  readonly modes?: readonly Mode[]
  /** The code of the attempt, and of the call when no other line is there. */
  readonly code: ErrorCode
  readonly upstreamStatus?: number | null
  readonly timeoutPhase?: TimeoutPhase
  /** Whether the next line is tried. */
  readonly failsOver: boolean
  /** Whether it counts against the line's circuit. */
  readonly blames: boolean
  readonly param?: string
  /** The wait that the caller is sent, in milliseconds: at least and at most. */
  readonly retryAfterMs?: readonly [number, number]
  /** Most milliseconds that the attempt may take. */
  readonly within?: number
}

/** Runs each row alone, and in front of a line that answers, in each of its modes. */
export function testOutcomes(name: string, rows: readonly OutcomeRow[]): void {
  describe(name, () => {
    let good: ScriptedUpstream
    let bad: ScriptedUpstream
    const cleanUp = cleaningUp()
    before(async () => {
      good = await startUpstream()
      cleanUp.after(() => good.close())
      bad = await startUpstream()
      cleanUp.after(() => bad.close())
    })
    for (const row of rows) {
      for (const mode of row.modes ?? MODES) {
        const gatewayOver = (others: { url: string }[]): Promise<TestGateway> => {
          good.requests.length = 0
          good.script = (res) => answer(res, mode)
          bad.script = (res) => (row.script ?? answer)(res, mode)
          const circuit = { minimumCalls: 1, errorPercent: 50, resetMs: 60_000 }
          const seed = { url: bad.url, protocol: mode.protocol, circuit, ...row.line }
          return startGateway({
            lines: [seed, ...others.map((line) => ({ protocol: mode.protocol, ...line }))],
          })
        }
        it(`${row.does}: ${row.code} (${modeName(mode)})`, async () => {
          const gateway = await gatewayOver([])
          try {
            await assertAlone(gateway, row, mode)
          } finally {
            await gateway.close()
          }
        })
        const verb = row.failsOver ? 'the next line answers' : 'no other line is tried'
        it(`${row.does}: ${verb} (${modeName(mode)})`, async () => {
          const gateway = await gatewayOver([{ url: good.url }])
          try {
            const got = await exchange(gateway, mode)
            if (row.failsOver) {
              assert.equal(got.status, 200)
              assert.equal(saidTo(mode, got), 'Hello')
              assert.equal(got.broken, false)
            } else assertRefused(got, row, mode)
            assert.doesNotMatch(got.text, new RegExp(SECRET))
            const { attempts } = await routingOf(gateway, got)
            assert.deepEqual(
              attempts.map(({ line, outcome }) => [line, outcome]),
              row.failsOver
                ? [
                    ['line-0', row.code],
                    ['line-1', 'completed'],
                  ]
                : [['line-0', row.code]],
            )
            assert.equal(good.requests.length, row.failsOver ? 1 : 0)
          } finally {
            await gateway.close()
          }
        })
      }
    }
  })
}

async function assertAlone(gateway: TestGateway, row: OutcomeRow, mode: Mode): Promise<void> {
  const got = await exchange(gateway, mode)
  assertRefused(got, row, mode)
  const entry = await gateway.entry(got.requestId)
  assert.equal(entry.status, got.status)
  assert.equal(entry.error_code, row.code)
  assert.equal(entry.outcome, 'failed')
  assert.equal(entry.usage, null, 'nothing is billed')
  const { attempts, eliminated } = await routingOf(gateway, got)
  assert.deepEqual(eliminated, [])
  assert.equal(attempts.length, 1)
  const [attempt] = attempts
  assert.equal(attempt?.outcome, row.code)
  assert.equal(attempt?.upstream_model, 'upstream-chat-0')
  assert.equal(attempt?.upstream_status, row.upstreamStatus ?? null)
  assert.equal(attempt?.timeout_phase, row.timeoutPhase ?? null)
  assert.ok(attempt && attempt.duration_ms >= 0 && attempt.duration_ms < (row.within ?? 5000))
  const [line] = gateway.config.catalog.lines
  assert.ok(line)
  assert.equal(gateway.lines.status(line).circuit, row.blames ? 'open' : 'closed')
  assert.equal(gateway.lines.status(line).in_flight, 0)
}

function assertRefused(got: Exchange, row: OutcomeRow, { protocol }: Mode): void {
  const expected = ERROR_CODES[row.code]
  assert.equal(got.status, expected.status)
  assert.equal(got.broken, false)
  assert.match(got.headers.get('content-type') ?? '', /^application\/json/)
  assert.equal(got.envelope().request_id, got.requestId)
  assert.match(got.requestId, /^req_/)
  if (protocol === 'openai') {
    assert.equal(got.errorCode, row.code)
    assert.equal(got.envelope().error.param, row.param)
  } else {
    assert.equal(got.envelope().type, 'error')
    assert.equal('code' in got.envelope().error, false)
  }
  assert.doesNotMatch(got.text, new RegExp(SECRET))
  assert.doesNotMatch(JSON.stringify([...got.headers]), new RegExp(SECRET))
  const shouldRetry = 'shouldRetry' in expected ? String(expected.shouldRetry) : null
  assert.equal(got.headers.get('x-should-retry'), shouldRetry)
  const [least, most] = row.retryAfterMs ?? (expected.status === 429 ? [1900, 2000] : [])
  if (least === undefined || most === undefined) {
    assert.equal(got.headers.get('retry-after'), null)
    return
  }
  const wait = Number(got.headers.get('retry-after-ms'))
  assert.ok(wait >= least && wait <= most, `${wait} ms, expected ${least} to ${most}`)
  assert.equal(got.headers.get('retry-after'), String(Math.max(1, Math.ceil(wait / 1000))))
}

async function routingOf(gateway: TestGateway, { requestId }: Exchange) {
  const { routing } = await gateway.entry(requestId)
  assert.ok(routing)
  return routing
}
