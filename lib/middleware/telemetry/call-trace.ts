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
import type { AttemptRecord, OpenCall } from '../../core/call/index.ts'
import { OPERATIONS, type Operation } from '../../core/operations/index.ts'
import { ATTRIBUTE } from './attributes.ts'
import type { CallLabels } from './call-metrics.ts'

/** The methods that the semantic conventions name; any other is recorded as `_OTHER`. */
const METHODS: ReadonlySet<string> = new Set(
  'CONNECT DELETE GET HEAD OPTIONS PATCH POST PUT QUERY TRACE'.split(' '),
)
const OTHER_METHOD = '_OTHER'

const PROBE = ROOT_CONTEXT.setValue(createContextKey('express-model-gateway.probe'), true)
const activeContext = (): Context => context.active()

/** Whether a context manager is registered. Without one no span is ever active. */
export function keepsContext(): boolean {
  return context.with(PROBE, activeContext) === PROBE
}

/** The trace of one call: its span, and at its end a span of each attempt and of settling. */
export class CallTrace {
  readonly #tracer: Tracer
  readonly #method: string
  readonly #span: Span
  readonly #parent: Context

  /**
   * Starts the span of the call, backdated to the call's start. Its parent is the active span, or else the one that
   * the caller's `traceparent` names.
   */
  constructor(tracer: Tracer, call: OpenCall, req: IncomingMessage) {
    const around = context.active()
    const parent = trace.getSpan(around) ? around : propagation.extract(around, req.headers)
    this.#tracer = tracer
    this.#method = METHODS.has(call.method) ? call.method : OTHER_METHOD
    const attributes: Attributes = {
      [ATTRIBUTE.method]: this.#method,
      [ATTRIBUTE.path]: call.shortPath,
      [ATTRIBUTE.requestId]: call.id,
    }
    this.#span = tracer.startSpan(
      this.#nameWith(undefined),
      { kind: SpanKind.SERVER, startTime: call.startedAt, attributes },
      parent,
    )
    this.#parent = parent
  }

  /** Runs `next` with the call's span active, so that spans made in it become its children. */
  run(next: () => void): void {
    context.with(trace.setSpan(this.#parent, this.#span), next)
  }

  /** Ends the span with the result of the call. Builds nothing if the span is not recorded. */
  end(call: OpenCall, labels: CallLabels): void {
    const span = this.#span
    if (!span.isRecording()) return
    const { routing, settling, request, outcome } = call
    const within = trace.setSpan(this.#parent, span)
    for (const attempt of routing?.attempts ?? []) this.#addAttempt(attempt, labels, within)
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

  #addAttempt(attempt: AttemptRecord, { operation, model }: CallLabels, within: Context): void {
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

  /** Span names group traces, so they hold no value that the caller sent, except for a known method. */
  #nameWith(target: string | undefined): string {
    const method = this.#method === OTHER_METHOD ? 'HTTP' : this.#method
    return target === undefined ? method : `${method} ${target}`
  }
}

const ROUTES: ReadonlySet<Operation> = new Set(OPERATIONS)

/** Returns the path of an operation of the table. Other paths may hold an id. */
function routeOf(operation: Operation): string | undefined {
  return ROUTES.has(operation) ? operation.path : undefined
}

function endAttributes(call: OpenCall, { operation, model, provider, error }: CallLabels): Attributes {
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
