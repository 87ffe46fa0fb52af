import type { TestContext } from 'node:test'
import type { AttemptRecord, OpenCall } from '../../../lib/core/call/index.ts'
import { callMetricsOn, labelsOf } from '../../../lib/middleware/telemetry/call-metrics.ts'
import { collectingMeter } from './collected.ts'

/** When every call began. */
export const STARTED = 1_000_000

/** An attempt that served. */
export const attempt = (members: Partial<AttemptRecord> = {}): AttemptRecord => ({
  line: 'line-0',
  protocol: 'openai',
  provider: 'acme-cloud',
  startedAt: STARTED + 100,
  upstreamModel: 'up',
  upstreamStatus: 200,
  outcome: 'completed',
  timeoutPhase: null,
  detail: null,
  connectMs: 1,
  firstByteMs: 250,
  durationMs: 2000,
  skipped: 0,
  ...members,
})

/** A call that has ended. */
export const endedCall = (members: object = {}) =>
  ({
    startedAt: STARTED,
    model: 'chat',
    request: { operation: { name: 'chat.completions' }, model: { id: 'chat' }, stream: false },
    routing: { attempts: [attempt()], eliminated: [] },
    outcome: { status: 200, errorCode: null, finish: 'completed' },
    usage: null,
    billing: null,
    limit: null,
    idempotency: null,
    guards: [],
    cache: null,
    ...members,
  }) as unknown as OpenCall

/** The metrics of calls that took 1.5 s each. */
export async function toldOf(t: TestContext, ...calls: OpenCall[]) {
  const { meter, collect } = collectingMeter(t)
  const metrics = callMetricsOn(meter)
  for (const call of calls) {
    metrics.begin()
    metrics.end(call, labelsOf(call, undefined), 1500)
  }
  const told = await collect()
  const points = (name: string) =>
    told.get(name)?.points.map(([attributes, value]) => [{ ...attributes }, value])
  return { told, points, metrics, collect }
}
