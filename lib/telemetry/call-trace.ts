import type { IncomingMessage } from 'node:http'
import {
  type Attributes,
  type Context,
  context,
  propagation,
  type Span,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api'
import type { AttemptRecord, Call } from '../call/index.ts'
import { OPERATIONS, type Operation } from '../operations/index.ts'
import { ATTRIBUTE } from './attributes.ts'
import type { CallLabels } from './call-labels.ts'

/** The methods that the conventions name; any other is told as one. */
const METHODS: ReadonlySet<string> = new Set(
  'CONNECT DELETE GET HEAD OPTIONS PATCH POST PUT QUERY TRACE'.split(' '),
)
const OTHER_METHOD = '_OTHER'
const LONGEST_PATH = 500

/** The trace of one call: a span of its own, and when it has ended one of each attempt and of settling. */
export class CallTrace {
  readonly #tracer: Tracer
  readonly #method: string
  readonly #span: Span
  readonly #context: Context

  /** Goes on from the span that is active, else from the one that the caller's `traceparent` names. */
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
    this.#context = trace.setSpan(parent, this.#span)
  }

  /** Runs what is behind with the call's span as the active one, so that spans of its own belong to it. */
  run(behind: () => void): void {
    context.with(this.#context, behind)
  }

  /** Tells how the call went; of one that is not recorded nothing is put together. */
  end(call: Call, labels: CallLabels): void {
    const span = this.#span
    if (!span.isRecording()) return
    for (const attempt of call.routing?.attempts ?? []) this.#tellAttempt(attempt, labels)
    const { settling, request, outcome } = call
    if (settling) this.#child('settle', SpanKind.INTERNAL, settling.startedAt, settling.endedAt ?? Date.now())
    if (request) span.updateName(this.#nameWith(routeOf(request.operation) ?? request.operation.name))
    span.setAttributes(endAttributes(call, labels))
    const failed = outcome !== null && (outcome.status >= 500 || outcome.finish === 'interrupted')
    if (failed) span.setStatus({ code: SpanStatusCode.ERROR })
    span.end(Date.now())
  }

  #tellAttempt(attempt: AttemptRecord, { operation, model }: CallLabels): void {
    const { line, provider, upstreamModel, upstreamStatus, outcome, timeoutPhase } = attempt
    const name = [operation, upstreamModel ?? model].filter((word) => word !== undefined).join(' ')
    const { startedAt, durationMs } = attempt
    this.#child(name === '' ? 'attempt' : name, SpanKind.CLIENT, startedAt, startedAt + durationMs, {
      [ATTRIBUTE.operation]: operation,
      [ATTRIBUTE.provider]: provider,
      [ATTRIBUTE.model]: upstreamModel ?? undefined,
      [ATTRIBUTE.line]: line,
      [ATTRIBUTE.status]: upstreamStatus ?? undefined,
      [ATTRIBUTE.error]: outcome === 'completed' ? undefined : outcome,
      [ATTRIBUTE.timeoutPhase]: timeoutPhase ?? undefined,
    })
  }

  #child(
    name: string,
    kind: SpanKind,
    startTime: number,
    endTime: number,
    attributes: Attributes = {},
  ): void {
    this.#tracer.startSpan(name, { kind, startTime, attributes }, this.#context).end(endTime)
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
