import type { Attributes, Histogram, Meter } from '@opentelemetry/api'
import type { AttemptRecord, Call, Usage } from '../call/index.ts'
import { ATTRIBUTE } from './attributes.ts'
import type { CallLabels } from './call-labels.ts'
import { callTallies } from './call-tallies.ts'
import { idempotencyOutcome } from './idempotency-outcome.ts'

/** The bounds that the conventions advise, in seconds and in tokens. */
const DURATIONS = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92]
const FIRST_TOKENS = [0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10]
const TOKENS = [
  1, 4, 16, 64, 256, 1024, 4096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304, 16_777_216, 67_108_864,
]

const onMeters = new WeakMap<Meter, CallMetrics>()

/** The metrics of calls on a meter: one set, however many chains of a process are counted in it. */
export function callMetricsOn(meter: Meter): CallMetrics {
  const known = onMeters.get(meter)
  if (known) return known
  const made = new CallMetrics(meter)
  onMeters.set(meter, made)
  return made
}

/** What is recorded of a call, all of it when it ends. */
export class CallMetrics {
  readonly #duration: Histogram
  readonly #firstToken: Histogram
  readonly #attemptDuration: Histogram
  readonly #tokenUsage: Histogram
  readonly #count: ReturnType<typeof callTallies>
  #open = 0

  constructor(meter: Meter) {
    const histogram = (name: string, unit: string, description: string, bounds: number[]) =>
      meter.createHistogram(name, { unit, description, advice: { explicitBucketBoundaries: bounds } })
    this.#duration = histogram(
      'gen_ai.server.request.duration',
      's',
      'Calls that run a model, from their begin to their end',
      DURATIONS,
    )
    this.#firstToken = histogram(
      'gen_ai.server.time_to_first_token',
      's',
      'Completed streams, from the begin of the call to the first byte of the answer',
      FIRST_TOKENS,
    )
    this.#attemptDuration = histogram(
      'gen_ai.client.operation.duration',
      's',
      'Attempts on lines, from sending to their end',
      DURATIONS,
    )
    this.#tokenUsage = histogram('gen_ai.client.token.usage', '{token}', 'Tokens of a call', TOKENS)
    this.#count = callTallies(meter)
    meter
      .createObservableUpDownCounter('model_gateway.calls.open', {
        unit: '{call}',
        description: 'Calls that have not ended',
      })
      .addCallback((result) => result.observe(this.#open))
  }

  begin(): void {
    this.#open++
  }

  /** @param ms how long the call took, in milliseconds. */
  end(call: Call, labels: CallLabels, ms: number): void {
    this.#open--
    const { operation, model, provider, error } = labels
    const { outcome, routing, usage, billing, limit, idempotency } = call
    const count = this.#count
    count.calls.add(1, operation, model, outcome?.status, error, outcome?.finish)
    if (limit) count.limitRefusals.add(1, limit.kind, limit.level)
    if (idempotency) count.idempotency.add(1, idempotencyOutcome(call))
    if (billing?.charged) count.charges.add(Number(billing.charged), model)
    if (!operation) return
    const common = attributesOf(operation, model, provider)
    this.#duration.record(ms / 1000, error ? { ...common, [ATTRIBUTE.error]: error } : common)
    if (usage) this.#recordUsage(usage, common, model)
    if (!routing) return
    const { attempts, eliminated } = routing
    for (const { line, reason } of eliminated) count.eliminations.add(1, line, reason)
    for (const attempt of attempts) this.#recordAttempt(attempt, operation, model)
    if (attempts.length > 1) count.retries.add(attempts.length - 1, model)
    if (routing.retryBudgetSpent) count.withheldRetries.add(1, model)
    if (call.request?.stream && outcome?.finish === 'completed') this.#recordFirstToken(call, common)
  }

  #recordAttempt(attempt: AttemptRecord, operation: string, model: string | undefined): void {
    const { line, provider, outcome, timeoutPhase, durationMs } = attempt
    const attributes = attributesOf(operation, model, provider)
    attributes[ATTRIBUTE.line] = line
    if (outcome !== 'completed') attributes[ATTRIBUTE.error] = outcome
    this.#attemptDuration.record(durationMs / 1000, attributes)
    this.#count.attempts.add(1, line, outcome, timeoutPhase ?? undefined)
  }

  #recordFirstToken({ routing, startedAt }: Call, attributes: Attributes): void {
    const last = routing?.attempts.at(-1)
    if (!last || last.firstByteMs === null) return
    const ms = Math.max(0, last.startedAt - startedAt) + last.firstByteMs
    this.#firstToken.record(ms / 1000, attributes)
  }

  #recordUsage(usage: Usage, common: Attributes, model: string | undefined): void {
    const { inputTokens, cachedInputTokens, cacheWriteTokens, outputTokens, source } = usage
    const { tokens } = this.#count
    tokens.add(inputTokens, model, 'input', source)
    tokens.add(outputTokens, model, 'output', source)
    if (cachedInputTokens > 0) tokens.add(cachedInputTokens, model, 'cached_input', source)
    if (cacheWriteTokens > 0) tokens.add(cacheWriteTokens, model, 'cache_write', source)
    this.#tokenUsage.record(inputTokens, { ...common, [ATTRIBUTE.tokenType]: 'input' })
    this.#tokenUsage.record(outputTokens, { ...common, [ATTRIBUTE.tokenType]: 'output' })
  }
}

function attributesOf(
  operation: string,
  model: string | undefined,
  provider: string | undefined,
): Attributes {
  const attributes: Attributes = { [ATTRIBUTE.operation]: operation }
  if (model !== undefined) attributes[ATTRIBUTE.model] = model
  if (provider !== undefined) attributes[ATTRIBUTE.provider] = provider
  return attributes
}
