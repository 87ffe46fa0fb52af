import type { BatchObservableResult, Meter, ObservableUpDownCounter } from '@opentelemetry/api'
import type {
  AttemptRecord,
  CacheTrace,
  Elimination,
  Finish,
  GuardTrace,
  LimitRefusal,
  OpenCall,
  Usage,
} from '../../core/call/index.ts'
import type { Catalog, Model } from '../../core/catalog/index.ts'
import type { ErrorCode } from '../../core/errors/index.ts'
import { ATTRIBUTE, OTHER } from './attributes.ts'
import { callHistograms } from './call-histograms.ts'
import { callTallies } from './call-tallies.ts'
import { type IdempotencyOutcome, idempotencyOutcome } from './idempotency-outcome.ts'
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

const NONE: readonly never[] = []

/** The data of an ended call for metrics, until it is recorded. Objects are reused, so no ended call is kept alive. */
export class CallFacts {
  operation: string | undefined = undefined
  model: string | undefined = undefined
  models: CallLabels['models'] = undefined
  provider: string | undefined = undefined
  error: CallLabels['error'] = undefined
  status: number | undefined = undefined
  finish: Finish | undefined = undefined
  /** The duration of the call in milliseconds. */
  ms = 0
  /** Milliseconds from the start of the call to the first byte of a completed stream; -1 if there was none. */
  firstTokenMs = -1
  usage: Usage | null = null
  charged: bigint | null = null
  limit: LimitRefusal | null = null
  idempotency: IdempotencyOutcome | undefined = undefined
  guards: readonly GuardTrace[] = NONE
  cache: CacheTrace['outcome'] | undefined = undefined
  eliminated: readonly Elimination[] = NONE
  attempts: readonly AttemptRecord[] = NONE
  retryBudgetSpent = false

  note(call: OpenCall, labels: CallLabels, ms: number): void {
    const { outcome, routing, billing } = call
    this.operation = labels.operation
    this.model = labels.model
    this.models = labels.models
    this.provider = labels.provider
    this.error = labels.error
    this.status = outcome?.status
    this.finish = outcome?.finish
    this.ms = ms
    this.firstTokenMs = call.request?.stream ? firstTokenMs(call) : -1
    this.usage = call.usage
    this.charged = billing ? billing.charged : null
    this.limit = call.limit
    this.idempotency = call.idempotency ? idempotencyOutcome(call) : undefined
    this.guards = call.guards.length > 0 ? call.guards : NONE
    this.cache = call.cache?.outcome
    this.eliminated = routing ? routing.eliminated : NONE
    this.attempts = routing ? routing.attempts : NONE
    this.retryBudgetSpent = routing?.retryBudgetSpent === true
  }

  /** Drops the references to parts of the call. */
  clear(): void {
    this.usage = null
    this.limit = null
    this.guards = NONE
    this.eliminated = NONE
    this.attempts = NONE
  }
}

function firstTokenMs({ outcome, routing, startedAt }: OpenCall): number {
  if (outcome?.finish !== 'completed') return -1
  const last = routing?.attempts.at(-1)
  if (!last || last.firstByteMs === null) return -1
  return Math.max(0, last.startedAt - startedAt) + last.firstByteMs
}

/** How many calls are recorded at once: a batch makes better use of the CPU caches. */
const BATCH_SIZE = 64

const metricsByMeter = new WeakMap<Meter, CallMetrics>()

/** Returns the metrics of calls on a meter. All chains of a process share one set. */
export function callMetricsOn(meter: Meter): CallMetrics {
  const known = metricsByMeter.get(meter)
  if (known) return known
  const made = new CallMetrics(meter)
  metricsByMeter.set(meter, made)
  return made
}

/** The metrics of calls. Ended calls are recorded when the batch is full or metrics are collected. */
export class CallMetrics {
  readonly #histograms: ReturnType<typeof callHistograms>
  readonly #tallies: ReturnType<typeof callTallies>
  readonly #openCalls: ObservableUpDownCounter
  readonly #noted = Array.from({ length: BATCH_SIZE }, () => new CallFacts())
  #waiting = 0
  #open = 0

  constructor(meter: Meter) {
    this.#histograms = callHistograms(meter)
    this.#tallies = callTallies(meter)
    this.#openCalls = meter.createObservableUpDownCounter('model_gateway.calls.open', {
      unit: '{call}',
      description: 'Calls that have not ended',
    })
    const counters = Object.values(this.#tallies).map(({ counter }) => counter)
    // Callbacks run before any instrument is collected, so that histograms are complete, too.
    meter.addBatchObservableCallback((result) => this.#observe(result), [this.#openCalls, ...counters])
  }

  begin(): void {
    this.#open++
  }

  /** @param ms the duration of the call in milliseconds. */
  end(call: OpenCall, labels: CallLabels, ms: number): void {
    this.#open--
    this.#noted[this.#waiting++]?.note(call, labels, ms)
    if (this.#waiting === BATCH_SIZE) this.#recordNoted()
  }

  /** Counts a charge that is made after its call has ended, in nano-units. */
  charge(model: string, amount: bigint): void {
    this.#tallies.charges.counts.with(ATTRIBUTE.model, model).add(Number(amount))
  }

  #observe(result: BatchObservableResult): void {
    this.#recordNoted()
    result.observe(this.#openCalls, this.#open)
    for (const tally of Object.values(this.#tallies)) tally.observe(result)
  }

  #recordNoted(): void {
    for (let i = 0; i < this.#waiting; i++) {
      const facts = this.#noted[i] as CallFacts
      this.#record(facts)
      facts.clear()
    }
    this.#waiting = 0
  }

  #record(facts: CallFacts): void {
    const { operation, model, provider, error, status, finish, ms, usage, charged } = facts
    const { cache, calls, charges, guards, limitRefusals, idempotency } = this.#tallies
    calls.counts
      .with(ATTRIBUTE.operation, operation)
      .with(ATTRIBUTE.model, model)
      .with(ATTRIBUTE.status, status)
      .with(ATTRIBUTE.error, error)
      .with(ATTRIBUTE.outcome, finish)
      .add(1)
    if (facts.limit) {
      const { kind, level } = facts.limit
      limitRefusals.counts.with(ATTRIBUTE.limitKind, kind).with(ATTRIBUTE.limitLevel, level).add(1)
    }
    for (const { guard, on, decision } of facts.guards)
      guards.counts
        .with(ATTRIBUTE.guard, guard)
        .with(ATTRIBUTE.direction, on)
        .with(ATTRIBUTE.outcome, decision)
        .add(1)
    if (facts.cache) cache.counts.with(ATTRIBUTE.model, model).with(ATTRIBUTE.outcome, facts.cache).add(1)
    if (facts.idempotency) idempotency.counts.with(ATTRIBUTE.outcome, facts.idempotency).add(1)
    if (charged) charges.counts.with(ATTRIBUTE.model, model).add(Number(charged))
    if (!operation) return
    const { duration, firstToken } = this.#histograms
    const durationLabels = common(duration.labels, operation, model, provider).with(ATTRIBUTE.error, error)
    duration.histogram.record(ms / 1000, durationLabels.attributes)
    if (usage) this.#recordUsage(usage, operation, model, provider)
    this.#recordRouting(facts, operation)
    if (facts.firstTokenMs < 0) return
    const { attributes } = common(firstToken.labels, operation, model, provider)
    firstToken.histogram.record(facts.firstTokenMs / 1000, attributes)
  }

  #recordRouting(
    { model, models, attempts, eliminated, retryBudgetSpent }: CallFacts,
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
