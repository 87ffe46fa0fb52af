import type { BatchObservableResult, Meter, ObservableUpDownCounter } from '@opentelemetry/api'
import type { AttemptRecord, OpenCall, RoutingTrace, Usage } from '../../core/call/index.ts'
import type { Catalog, Model } from '../../core/catalog/index.ts'
import type { ErrorCode } from '../../core/errors/index.ts'
import { ATTRIBUTE, OTHER } from './attributes.ts'
import { callHistograms } from './call-histograms.ts'
import { callTallies } from './call-tallies.ts'
import { idempotencyOutcome } from './idempotency-outcome.ts'
import type { Labelled } from './labelled.ts'

/**
 * The attribute values of a call. Each comes from a list that the app defines: the operations, the models and lines
 * of its catalogue, the table of codes. No value is copied from what a caller sent.
 */
export interface CallLabels {
  /** `other` for a call outside the table of operations, such as pass-through; undefined if no endpoint was reached. */
  readonly operation: string | undefined
  /** Undefined if no model was requested. */
  readonly model: string | undefined
  /** The labels of the models that were tried, by their ids; undefined if they all have one. */
  readonly models: ReadonlyMap<string, string> | undefined
  /** The provider of the line that was tried last; undefined if none was. */
  readonly provider: string | undefined
  readonly error: ErrorCode | typeof OTHER | undefined
}

/** The operations that have a name in the semantic conventions; the others keep their own. */
const CONVENTIONAL: Readonly<Record<string, string>> = {
  'chat.completions': 'chat',
  messages: 'chat',
  responses: 'chat',
  completions: 'text_completion',
}

/** Returns the labels of the models of a call's attempts, by what its trace calls them; undefined if they all have one. */
function modelsOf({ routing }: OpenCall, catalog: Catalog | undefined): CallLabels['models'] {
  const names = routing?.attempts.flatMap(({ model }) => model ?? []) ?? []
  if (names.length === 0) return undefined
  return new Map(names.map((name) => [name, knownModel(name, catalog)]))
}

export function labelsOf(call: OpenCall, catalog: Catalog | undefined): CallLabels {
  const { request, routing, model, outcome } = call
  return {
    operation: request
      ? (CONVENTIONAL[request.operation.name] ?? request.operation.name)
      : routing
        ? OTHER
        : undefined,
    model: request ? labelOf(request.model) : model === null ? undefined : knownModel(model, catalog),
    models: modelsOf(call, catalog),
    provider: routing?.attempts.at(-1)?.provider,
    error: outcome?.errorCode ?? (outcome && outcome.status >= 400 ? OTHER : undefined),
  }
}

/** Returns a model's id if the catalogue has it, the pattern that matches its name, or `other`. */
export function knownModel(name: string, catalog: Catalog | undefined): string {
  const model = catalog?.modelOf(name)
  return model ? labelOf(model) : OTHER
}

function labelOf({ id, pattern }: Model): string {
  return pattern ?? id
}

/** Returns the milliseconds from the start of a call to the first byte of its completed stream; undefined if there was none. */
function firstTokenMs({ outcome, request, routing, startedAt }: OpenCall): number | undefined {
  if (!request?.stream || outcome?.finish !== 'completed') return undefined
  const last = routing?.attempts.at(-1)
  if (!last || last.firstByteMs === null) return undefined
  return Math.max(0, last.startedAt - startedAt) + last.firstByteMs
}

const metricsByMeter = new WeakMap<Meter, CallMetrics>()

/** Returns the metrics of calls on a meter. All chains of a process share one set. */
export function callMetricsOn(meter: Meter): CallMetrics {
  const known = metricsByMeter.get(meter)
  if (known) return known
  const made = new CallMetrics(meter)
  metricsByMeter.set(meter, made)
  return made
}

/** The metrics of calls. */
export class CallMetrics {
  readonly #histograms: ReturnType<typeof callHistograms>
  readonly #tallies: ReturnType<typeof callTallies>
  readonly #openCalls: ObservableUpDownCounter
  #open = 0

  constructor(meter: Meter) {
    this.#histograms = callHistograms(meter)
    this.#tallies = callTallies(meter)
    this.#openCalls = meter.createObservableUpDownCounter('model_gateway.calls.open', {
      unit: '{call}',
      description: 'Calls that have not ended',
    })
    const counters = Object.values(this.#tallies).map(({ counter }) => counter)
    meter.addBatchObservableCallback((result) => this.#observe(result), [this.#openCalls, ...counters])
  }

  begin(): void {
    this.#open++
  }

  /** @param ms the duration of the call in milliseconds. */
  end(call: OpenCall, labels: CallLabels, ms: number): void {
    this.#open--
    this.#count(call, labels)
    const { operation, model, provider, error } = labels
    if (operation === undefined) return
    const { duration, firstToken } = this.#histograms
    const durationLabels = common(duration.labels, operation, model, provider).with(ATTRIBUTE.error, error)
    duration.histogram.record(ms / 1000, durationLabels.attributes)
    if (call.usage) this.#recordUsage(call.usage, operation, model, provider)
    if (call.routing) this.#recordRouting(call.routing, labels, operation)
    const untilFirst = firstTokenMs(call)
    if (untilFirst === undefined) return
    const { attributes } = common(firstToken.labels, operation, model, provider)
    firstToken.histogram.record(untilFirst / 1000, attributes)
  }

  /** Counts a charge that is made after its call has ended, in nano-units. */
  charge(model: string, amount: bigint): void {
    this.#tallies.charges.counts.with(ATTRIBUTE.model, model).add(Number(amount))
  }

  #observe(result: BatchObservableResult): void {
    result.observe(this.#openCalls, this.#open)
    for (const tally of Object.values(this.#tallies)) tally.observe(result)
  }

  #count(call: OpenCall, { operation, model, error }: CallLabels): void {
    const { outcome, limit, billing } = call
    const { cache, calls, charges, guards, limitRefusals, idempotency } = this.#tallies
    calls.counts
      .with(ATTRIBUTE.operation, operation)
      .with(ATTRIBUTE.model, model)
      .with(ATTRIBUTE.status, outcome?.status)
      .with(ATTRIBUTE.error, error)
      .with(ATTRIBUTE.outcome, outcome?.finish)
      .add(1)
    if (limit)
      limitRefusals.counts
        .with(ATTRIBUTE.limitKind, limit.kind)
        .with(ATTRIBUTE.limitLevel, limit.level)
        .add(1)
    for (const { guard, on, decision } of call.guards)
      guards.counts
        .with(ATTRIBUTE.guard, guard)
        .with(ATTRIBUTE.direction, on)
        .with(ATTRIBUTE.outcome, decision)
        .add(1)
    if (call.cache)
      cache.counts.with(ATTRIBUTE.model, model).with(ATTRIBUTE.outcome, call.cache.outcome).add(1)
    const repeated = call.idempotency && idempotencyOutcome(call)
    if (repeated) idempotency.counts.with(ATTRIBUTE.outcome, repeated).add(1)
    if (billing?.charged) charges.counts.with(ATTRIBUTE.model, model).add(Number(billing.charged))
  }

  #recordRouting(
    { attempts, eliminated, retryBudgetSpent }: RoutingTrace,
    { model, models }: CallLabels,
    operation: string,
  ): void {
    const { eliminations, retries, withheldRetries } = this.#tallies
    for (const { line, reason } of eliminated)
      eliminations.counts.with(ATTRIBUTE.line, line).with(ATTRIBUTE.reason, reason).add(1)
    for (const attempt of attempts)
      this.#recordAttempt(attempt, operation, models?.get(attempt.model ?? '') ?? model)
    if (attempts.length > 1) retries.counts.with(ATTRIBUTE.model, model).add(attempts.length - 1)
    if (retryBudgetSpent) withheldRetries.counts.with(ATTRIBUTE.model, model).add(1)
  }

  #recordAttempt(attempt: AttemptRecord, operation: string, model: string | undefined): void {
    const { line, provider, outcome, timeoutPhase, durationMs } = attempt
    const { histogram, labels } = this.#histograms.attemptDuration
    const { attributes } = common(labels, operation, model, provider)
      .with(ATTRIBUTE.line, line)
      .with(ATTRIBUTE.error, outcome === 'completed' ? undefined : outcome)
    histogram.record(durationMs / 1000, attributes)
    this.#tallies.attempts.counts
      .with(ATTRIBUTE.line, line)
      .with(ATTRIBUTE.outcome, outcome)
      .with(ATTRIBUTE.timeoutPhase, timeoutPhase ?? undefined)
      .add(1)
  }

  #recordUsage(
    usage: Usage,
    operation: string,
    model: string | undefined,
    provider: string | undefined,
  ): void {
    const { inputTokens, cachedInputTokens, cacheWriteTokens, outputTokens, source } = usage
    const counts = this.#tallies.tokens.counts.with(ATTRIBUTE.model, model)
    const count = (type: string, tokens: number) =>
      counts.with(ATTRIBUTE.tokenType, type).with(ATTRIBUTE.usageSource, source).add(tokens)
    count('input', inputTokens)
    count('output', outputTokens)
    if (cachedInputTokens > 0) count('cached_input', cachedInputTokens)
    if (cacheWriteTokens > 0) count('cache_write', cacheWriteTokens)
    const { histogram, labels } = this.#histograms.tokenUsage
    const shared = common(labels, operation, model, provider)
    histogram.record(inputTokens, shared.with(ATTRIBUTE.tokenType, 'input').attributes)
    histogram.record(outputTokens, shared.with(ATTRIBUTE.tokenType, 'output').attributes)
  }
}

function common(
  labels: Labelled,
  operation: string,
  model: string | undefined,
  provider: string | undefined,
): Labelled {
  return labels
    .with(ATTRIBUTE.operation, operation)
    .with(ATTRIBUTE.model, model)
    .with(ATTRIBUTE.provider, provider)
}
