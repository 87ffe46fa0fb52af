import type { IncomingHttpHeaders } from 'node:http'
import type { Dispatcher } from 'undici'
import { BodyCollector } from '../../core/bytes/index.ts'
import type { AttemptRecord, LineRequest, LineResult } from '../../core/call/index.ts'
import { isJsonObject, parseJson } from '../../core/json/index.ts'
import type { LineState } from '../lines/line-state.ts'
import type { Wire } from '../lines/upstream-pool.ts'
import { DispatchExchange, type ResponseHandler } from './dispatch-exchange.ts'
import type { ExchangeTarget } from './exchange.ts'
import { type ExchangeEnd, type Failure, malformed, timedOut } from './failure.ts'
import { failureOfError, failureOfStatus, statusOfError } from './outcome.ts'
import { errorInPlaceOf } from './upstream-error.ts'
import { pathOn } from './upstream-path.ts'
import { lineHeaders } from './upstream-request.ts'

/** Answers about tasks are short; a longer one is taken for broken. */
const MAX_ANSWER_BYTES = 4 * 1024 * 1024

type SendEnd = ExchangeEnd & { readonly result: LineResult }

/** One request to one line, and its whole answer. */
export class LineSend implements ResponseHandler<SendEnd> {
  readonly #exchange: DispatchExchange<SendEnd>
  readonly #signal: AbortSignal
  readonly #body = new BodyCollector(MAX_ANSWER_BYTES)
  #headers: IncomingHttpHeaders = {}

  /** @param signal when it aborts, the request counts as unanswered. */
  constructor(
    target: ExchangeTarget & { readonly state: LineState },
    request: LineRequest,
    signal: AbortSignal,
  ) {
    const { wire: own } = target.state
    const wire = request.method === 'GET' ? own : onlyFresh(own)
    this.#exchange = new DispatchExchange(target, optionsOf(target, request), wire, Infinity)
    this.#signal = signal
  }

  /** Sends the request. Never rejects. */
  async run(): Promise<LineResult> {
    // An answer that has arrived when the time is up is read first.
    const onAbort = (): void => void setImmediate(() => this.#exchange.abandon())
    this.#signal.addEventListener('abort', onAbort)
    const { result } = await this.#exchange.run(this, !this.#signal.aborted)
    this.#signal.removeEventListener('abort', onAbort)
    return result
  }

  get decodes(): boolean {
    return true
  }

  /** How the request failed; undefined if it was answered. */
  get failure(): Failure | undefined {
    const { end } = this.#exchange
    return end?.kind === 'served' ? undefined : end?.failure
  }

  /** The record for the trace, with the outcome that the sender gives it. */
  record(outcome: AttemptRecord['outcome']): AttemptRecord {
    return { ...this.#exchange.record, outcome }
  }

  start(_status: number, headers: IncomingHttpHeaders): undefined {
    this.#headers = headers
  }

  push(chunk: Buffer): boolean {
    return !this.#body.push(chunk)
  }

  flush(): SendEnd | undefined {
    return this.#body.overflowed ? this.breakOff(malformed('the answer is too long')) : undefined
  }

  finish(): SendEnd {
    const status = this.#exchange.status ?? 0
    const body = this.#body.take()
    const json = parseJson(body.toString(), body)
    if (status >= 300) return this.#refused(status, failureOfStatus(status, this.#headers, json), body)
    const error = withoutId(json) ? errorInPlaceOf(json) : undefined
    if (error !== undefined)
      return this.#refused(statusOfError(error), failureOfError(error, this.#headers), body)
    return { kind: 'served', result: { kind: 'answered', status, headers: this.#headers, body } }
  }

  /** @param status the status that the answer has, or that the error in its place names. */
  #refused(status: number, { unknownPath: _, ...failure }: Failure, body: Buffer): SendEnd {
    // Most refusals of a request about a task are not the line's fault.
    const lineFault = status >= 500 || status === 429
    return { ...failed(failure, lineFault), result: { kind: 'refused', status, failure, body } }
  }

  breakOff(failure: Failure): SendEnd {
    return {
      ...failed(failure, failure.fault !== null),
      result: { kind: 'failed', failure, sent: this.#exchange.connected },
    }
  }

  /** Handles an aborted signal: the sender's timeout ran out, or the sender no longer waits. */
  abandon(): SendEnd {
    const { reason } = this.#signal
    const isLate = reason instanceof DOMException && reason.name === 'TimeoutError'
    const failure = isLate
      ? timedOut('total', performance.now() - this.#exchange.startedAt)
      : malformed('nobody waits for the answer any more')
    return {
      kind: 'abandoned',
      failure,
      result: { kind: 'failed', failure, sent: this.#exchange.connected },
    }
  }
}

/** Whether an answer is about no task: a task that failed has an error, too. */
function withoutId(json: unknown): boolean {
  return !isJsonObject(json) || json.id === undefined
}

function failed(failure: Failure, lineFault: boolean) {
  return { kind: 'failed', failure, committed: false, elsewhere: false, lineFault } as const
}

/** Sends every request over a new connection, for requests that must not be sent twice. */
function onlyFresh(wire: Wire): Wire {
  const dispatchFresh: Wire['dispatchFresh'] = (options, handler) => wire.dispatchFresh(options, handler)
  const signsAnew: Wire['signsAnew'] = (handler) => wire.signsAnew?.(handler) ?? false
  return { dispatch: dispatchFresh, dispatchFresh, signsAnew }
}

function optionsOf(
  { line }: ExchangeTarget,
  { method, path, body, inbound = {} }: LineRequest,
): Dispatcher.DispatchOptions {
  const { 'openai-beta': beta } = inbound
  const given = {
    accept: 'application/json',
    ...(body && { 'content-type': body.type }),
    ...(beta !== undefined && { 'openai-beta': String(beta) }),
  }
  return {
    method,
    path: pathOn(line, path),
    headers: lineHeaders(line, given, inbound),
    body: body?.bytes ?? null,
    idempotent: false,
  }
}
