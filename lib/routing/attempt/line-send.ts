import type { IncomingHttpHeaders } from 'node:http'
import type { Dispatcher } from 'undici'
import type { AttemptRecord, LineRequest, LineResult } from '../../core/call/index.ts'
import { isJsonObject, parseJson } from '../../core/json/index.ts'
import { BodyCollector } from '../../core/memory/index.ts'
import type { LineState } from '../lines/line-state.ts'
import type { Transport } from '../lines/upstream-pool.ts'
import { failureOfError, failureOfStatus, statusOfError } from './classify-failure.ts'
import { DispatchExchange } from './dispatch-exchange.ts'
import type { ExchangeTarget } from './exchange.ts'
import { type AttemptEnd, type Failure, failedEnd, malformed, timedOut } from './failure.ts'
import { errorInPlaceOf } from './upstream-error.ts'
import { pathOn } from './upstream-path.ts'
import { lineHeaders } from './upstream-request.ts'

/** Answers about tasks are short; a longer one is taken for broken. */
const MAX_ANSWER_BYTES = 4 * 1024 * 1024

/** The result of one request to one line, with the record for the trace. */
export interface LineReply {
  readonly result: LineResult
  /** How the request failed; undefined if it was answered. */
  readonly failure: Failure | undefined
  /** Returns the record for the trace, with the outcome that the sender gives it. */
  record(outcome: AttemptRecord['outcome']): AttemptRecord
}

/**
 * Sends one request to one line, and receives the whole answer. Never rejects.
 *
 * @param signal when it aborts, the request counts as unanswered.
 */
export async function sendToLine(
  target: ExchangeTarget & { readonly state: LineState },
  request: LineRequest,
  signal: AbortSignal,
): Promise<LineReply> {
  const { transport: own } = target.state
  const transport = request.method === 'GET' ? own : onlyFresh(own)
  const exchange = new DispatchExchange(target, optionsOf(target, request), transport, Infinity)
  if (signal.aborted) exchange.abandon()
  // An answer that has arrived when the time is up is read first.
  const onAbort = (): void => void setImmediate(() => exchange.abandon())
  signal.addEventListener('abort', onAbort)
  const { result, end } = await receive(exchange, signal)
  signal.removeEventListener('abort', onAbort)
  exchange.conclude(end)
  const failure = end.kind === 'served' ? undefined : end.failure
  return { result, failure, record: (outcome) => ({ ...exchange.recordOf(end), outcome }) }
}

interface Received {
  readonly result: LineResult
  readonly end: AttemptEnd
}

async function receive(exchange: DispatchExchange, signal: AbortSignal): Promise<Received> {
  const body = new BodyCollector(MAX_ANSWER_BYTES)
  const head = await exchange.send(() => body)
  if (exchange.isAbandoned) return unanswered(exchange, signal)
  if (body.overflowed) return brokenOff(exchange, malformed('the answer is too long'))
  if (!head || exchange.failure) return brokenOff(exchange, exchange.failure ?? malformed('no answer'))
  return answered(head.status, head.headers, body.take())
}

function answered(status: number, headers: IncomingHttpHeaders, body: Buffer): Received {
  const json = parseJson(body.toString(), body)
  if (status >= 300) return refused(status, failureOfStatus(status, headers, json), body)
  const error = withoutId(json) ? errorInPlaceOf(json) : undefined
  if (error !== undefined) return refused(statusOfError(error), failureOfError(error, headers), body)
  return { end: { kind: 'served' }, result: { kind: 'answered', status, headers, body } }
}

/** @param status the status that the answer has, or that the error in its place names. */
function refused(status: number, { unknownPath: _, ...failure }: Failure, body: Buffer): Received {
  // Most refusals of a request about a task are not the line's fault.
  const lineFault = status >= 500 || status === 429
  return { end: failedEnd(failure, lineFault), result: { kind: 'refused', status, failure, body } }
}

function brokenOff({ connected: sent }: DispatchExchange, failure: Failure): Received {
  return { end: failedEnd(failure), result: { kind: 'failed', failure, sent } }
}

/** Handles an aborted signal: the sender's timeout ran out, or the sender no longer waits. */
function unanswered({ connected: sent, startedAt }: DispatchExchange, { reason }: AbortSignal): Received {
  const isLate = reason instanceof DOMException && reason.name === 'TimeoutError'
  const failure = isLate
    ? timedOut('total', performance.now() - startedAt)
    : malformed('the sender stopped waiting for the answer')
  return { end: { kind: 'abandoned', failure }, result: { kind: 'failed', failure, sent } }
}

/** Whether an answer is about no task: a task that failed has an error, too. */
function withoutId(json: unknown): boolean {
  return !isJsonObject(json) || json.id === undefined
}

/** Sends every request over a new connection, for requests that must not be sent twice. */
function onlyFresh(transport: Transport): Transport {
  const dispatchFresh: Transport['dispatchFresh'] = (options, handler) =>
    transport.dispatchFresh(options, handler)
  const signsAnew: Transport['signsAnew'] = (handler) => transport.signsAnew?.(handler) ?? false
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
