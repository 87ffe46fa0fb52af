import type { IncomingMessage } from 'node:http'
import {
  type Attributes,
  type Context,
  context,
  createContextKey,
  propagation,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api'
import type { AttemptRecord, Call } from '../../core/call/index.ts'
import { OPERATIONS, type Operation } from '../../core/operations/index.ts'
import { ATTRIBUTE } from './attributes.ts'
import type { CallLabels } from './call-labels.ts'

/** The methods that the conventions name; any other is told as one. */
const METHODS: ReadonlySet<string> = new Set(
  'CONNECT DELETE GET HEAD OPTIONS PATCH POST PUT QUERY TRACE'.split(' '),
)
const OTHER_METHOD = '_OTHER'
const LONGEST_PATH = 500

const PROBE = ROOT_CONTEXT.setValue(createContextKey('express-model-gateway.probe'), true)
const activeContext = (): Context => context.active()

/** Whether a context manager is registered; without one no span is ever active. */
export function keepsContext(): boolean {
  return context.with(PROBE, activeContext) === PROBE
}

/** The trace of one call: a span of its own, and when it has ended one of each attempt and of settling. */
export class CallTrace {
  readonly #tracer: Tracer
  readonly #method: string
  readonly #span: Span
  readonly #parent: Context

  /**
   * Begins the call's span, at the call's begin also where it is made later. It goes on from the span that is active, else
   * from the one that the caller's `traceparent` names.
   */
  constructor(tracer: Tracer, call: Call, req: IncomingMessage) {
    const around = context.active()
    const parent = trace.getSpan(around) ? around : propagation.extract(around, req.headers)
    this.#tracer = tracer
    this.#method = METHODS.has(call.method) ? call.method : OTHER_METHOD
    const attributes: Attributes = {
      [ATTRIBUTE.method]: this.#method,
      [ATTRIBUTE.path]: call.path.slice(0, LONGEST_PATH),
      [ATTRIBUTE.requestId]: call.id,
    }
    this.#span = tracer.startSpan(
      this.#nameWith(undefined),
      { kind: SpanKind.SERVER, startTime: call.startedAt, attributes },
      parent,
    )
    this.#parent = parent
  }

  /** Runs what is behind with the call's span as the active one, so that spans of its own belong to it. */
  run(behind: () => void): void {
    context.with(trace.setSpan(this.#parent, this.#span), behind)
  }

  /** Tells how the call went; of one that is not recorded nothing is put together. */
  end(call: Call, labels: CallLabels): void {
    const span = this.#span
    if (!span.isRecording()) return
    const { routing, settling, request, outcome } = call
    const within = trace.setSpan(this.#parent, span)
    for (const attempt of routing?.attempts ?? []) this.#tellAttempt(attempt, labels, within)
    if (settling) {
      const { startedAt, endedAt } = settling
      this.#tracer.startSpan('settle', { startTime: startedAt }, within).end(endedAt ?? Date.now())
    }
    if (request) span.updateName(this.#nameWith(routeOf(request.operation) ?? request.operation.name))
    span.setAttributes(endAttributes(call, labels))
    const failed = outcome !== null && (outcome.status >= 500 || outcome.finish === 'interrupted')
    if (failed) span.setStatus({ code: SpanStatusCode.ERROR })
    span.end(Date.now())
  }

  #tellAttempt(attempt: AttemptRecord, { operation, model }: CallLabels, within: Context): void {
    const { line, provider, upstreamModel, upstreamStatus, outcome, timeoutPhase } = attempt
    const { startedAt, durationMs } = attempt
    const name = [operation, upstreamModel ?? model].filter((word) => word !== undefined).join(' ')
    const attributes: Attributes = {
      [ATTRIBUTE.operation]: operation,
      [ATTRIBUTE.provider]: provider,
      [ATTRIBUTE.model]: upstreamModel ?? undefined,
      [ATTRIBUTE.line]: line,
      [ATTRIBUTE.status]: upstreamStatus ?? undefined,
      [ATTRIBUTE.error]: outcome === 'completed' ? undefined : outcome,
      [ATTRIBUTE.timeoutPhase]: timeoutPhase ?? undefined,
    }
    const options = { kind: SpanKind.CLIENT, startTime: startedAt, attributes }
    this.#tracer.startSpan(name === '' ? 'attempt' : name, options, within).end(startedAt + durationMs)
  }

  /** Of what callers send nothing but a method stands in a name: names are what traces are grouped by. */
  #nameWith(target: string | undefined): string {
    const method = this.#method === OTHER_METHOD ? 'HTTP' : this.#method
    return target === undefined ? method : `${method} ${target}`
  }
}

const ROUTES: ReadonlySet<Operation> = new Set(OPERATIONS)

/** The path of an operation of the table; that of another may hold an id. */
function routeOf(operation: Operation): string | undefined {
  return ROUTES.has(operation) ? operation.path : undefined
}

function endAttributes(call: Call, { operation, model, provider, error }: CallLabels): Attributes {
  const { request, outcome, usage, limit } = call
  return {
    [ATTRIBUTE.route]: request ? routeOf(request.operation) : undefined,
    [ATTRIBUTE.status]: outcome?.status,
    [ATTRIBUTE.outcome]: outcome?.finish,
    [ATTRIBUTE.error]: error,
    [ATTRIBUTE.operation]: operation,
    [ATTRIBUTE.model]: model,
    [ATTRIBUTE.provider]: provider,
    [ATTRIBUTE.inputTokens]: usage?.inputTokens,
    [ATTRIBUTE.outputTokens]: usage?.outputTokens,
    [ATTRIBUTE.limitKind]: limit?.kind,
    [ATTRIBUTE.limitLevel]: limit?.level,
  }
}
