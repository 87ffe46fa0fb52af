import type { IncomingHttpHeaders, ServerResponse } from 'node:http'
import {
  type AnswerBytes,
  type AttemptRecord,
  type CallRequest,
  joinedFilter,
  type OpenCall,
  type StreamFilter,
} from '../../../core/call/index.ts'
import { GatewayError } from '../../../core/errors/index.ts'
import { BodyCollector } from '../../../core/memory/index.ts'
import {
  type AnswerReading,
  estimateTokens,
  type FinishReason,
  type StreamReader,
} from '../../../core/operations/index.ts'
import { isPromise, MAX_BYTES_AT_ONCE, type MaybePromise, nextTurn } from '../../../core/timing/index.ts'
import { UniqueIds } from '../../../core/translate/index.ts'
import type { AdaptedRequest } from '../../../routing/attempt/adapted-request.ts'
import {
  BrokenEventStream,
  isAwsEventStream,
  readAwsEventStream,
} from '../../../routing/attempt/aws-event-stream.ts'
import { CallerDisconnect, type DisconnectPolicy } from '../../../routing/attempt/caller-disconnect.ts'
import { failureOfStatus } from '../../../routing/attempt/classify-failure.ts'
import {
  type AnswerHead,
  type BodyReceiver,
  DispatchExchange,
} from '../../../routing/attempt/dispatch-exchange.ts'
import {
  brokenOff,
  connectionFailure,
  type FailedEnd,
  type Failure,
  goneFromLine,
  malformed,
  UnsentError,
} from '../../../routing/attempt/failure.ts'
import { parseErrorBody } from '../../../routing/attempt/upstream-error.ts'
import { upstreamRequest } from '../../../routing/attempt/upstream-request.ts'
import type { Candidate } from '../../../routing/candidates/candidate.ts'
import type { AttemptContext, AttemptResult } from '../../../routing/try-candidates.ts'
import { CallerStream } from '../relay/caller-stream.ts'
import { type RelayEnd, StreamRelay } from '../relay/stream-relay.ts'
import { TranslatedEvents } from '../relay/translated-events.ts'
import { type LeftAttempt, reasonsUnseen } from './abandoned-usage.ts'
import { contextOf, isConvertible, newReader } from './convert-answer.ts'
import { DataCollector } from './json-digest.ts'
import { knownUsage, usageOfStream } from './metering.ts'
import { readWholeAnswer } from './whole-answer.ts'

/** A call that is routed, and where its answer goes. */
export interface RoutedCall {
  readonly call: OpenCall
  readonly request: CallRequest
  readonly inbound: IncomingHttpHeaders
  readonly res: ServerResponse
  readonly disconnect: DisconnectPolicy
}

/** How an attempt of a routed call ended. */
export type AnswerEnd = ServedEnd | AbandonedEnd | BrokenEnd

/** The line has answered. */
export interface ServedEnd {
  readonly kind: 'served'
  /** The whole answer, or the last events of a stream. It is sent once the call is settled. */
  readonly unsent: AnswerBytes
  /** The content of a whole answer. */
  readonly reading?: AnswerReading | undefined
  readonly stream?: StreamPart | undefined
  /** The members that the request was sent without. */
  readonly dropped: readonly string[] | undefined
}

/** The attempt was ended, because its caller has left or must not have the rest. */
export interface AbandonedEnd {
  readonly kind: 'abandoned'
  readonly failure?: undefined
  readonly stream?: StreamPart | undefined
  readonly left: LeftAttempt
  /** The reason if the stream was ended before its end, though its caller is there. */
  readonly endedBy?: GatewayError | undefined
  /** The error if the head of a stream must not be sent; nothing was sent then. */
  readonly refusedHead?: { readonly error: unknown } | undefined
}

export type BrokenEnd = FailedEnd & { readonly stream?: StreamPart | undefined }

/** The part of a stream that was relayed. */
export interface StreamPart {
  readonly reader: StreamReader
  /** The number of the caller's next event, in a protocol that numbers them. */
  readonly nextEventNumber: number | undefined
  /** Whether the head was sent. A filter may hold back the output until then. */
  readonly hasBegun: boolean
  /** How many things that the line keeps were recorded before the head. */
  readonly keptAtHead: number
  /** Milliseconds from its first byte to its end. */
  readonly durationMs: number
  /**
   * Checks the last events, and sends the head if nothing was sent yet. Returns what the caller has not got yet. Absent if no
   * filter checks the answer.
   */
  readonly checkEnd?: ((tail: Buffer) => Promise<Buffer>) | undefined
}

const EVENT_STREAM = 'text/event-stream'
/** A longer error body is read only up to this. */
const MAX_ERROR_BODY_BYTES = 64 * 1024

type WholeBody = BodyCollector | DataCollector

/** The state of an attempt while it runs. */
interface RunningAttempt {
  readonly routed: RoutedCall
  readonly candidate: Candidate
  readonly adapted: AdaptedRequest
  readonly exchange: DispatchExchange
  readonly report: AttemptContext['report']
  /** The body of a plain answer, as far as it has come. */
  body?: WholeBody | undefined
  /** The body of an answer with a status other than 200. */
  refusal?: BodyCollector
  /** The stream that is relayed, once it has begun. */
  relaying?: Relaying
  /** Parts of a translated plain answer that were left out. */
  skipped?: number
  finishReason?: FinishReason | undefined
  /** Whether the answer had begun when the caller left; absent as long as the caller is there. */
  hadBegun?: boolean
  endedBy?: GatewayError
  disconnect?: CallerDisconnect
}

interface Relaying {
  readonly reader: StreamReader
  /** The caller's events, if they are translated. */
  readonly events: TranslatedEvents | undefined
  readonly relay: StreamRelay
  readonly caller: CallerStream
  /** Checks what the caller gets; undefined if nothing does. */
  readonly filter: StreamFilter | undefined
  isCommitted: boolean
}

/**
 * Sends the request of a call to a candidate, and receives the answer. A stream is relayed to the caller from its first
 * output on; of every other answer nothing is sent yet.
 *
 * @param adapted the request in the form that the candidate accepts.
 */
export async function attemptOn(
  candidate: Candidate,
  adapted: AdaptedRequest,
  { deadline, report }: AttemptContext,
  routed: RoutedCall,
): Promise<AttemptResult<AnswerEnd>> {
  const { call, request, inbound } = routed
  const upstream = upstreamRequest(candidate, request, adapted, inbound)
  const { state } = candidate
  const exchange = new DispatchExchange(candidate, upstream, state.transport, deadline, {
    // Measured when it comes: the end of a long answer would be too late.
    onFirstByte: (ms) => state.observeFirstByte(ms),
  })
  const attempt: RunningAttempt = { routed, candidate, adapted, exchange, report }
  const onLeave = (): void => leave(attempt)
  call.onLeave(onLeave)
  let end: AnswerEnd | undefined
  try {
    const head = await exchange.send((head) => receiverFor(attempt, head))
    const ended = endOf(attempt, head)
    end = isPromise(ended) ? await ended : ended
  } finally {
    call.offLeave(onLeave)
    // A response whose last event has come may still end by itself.
    exchange.conclude(end ?? { kind: 'abandoned' }, end?.kind === 'served')
  }
  return { ...end, record: recordOf(attempt, end), disconnect: attempt.disconnect?.traceOf(end) }
}

/** Ends the attempt, or lets it continue for a while, because its caller has left. */
function leave(attempt: RunningAttempt): void {
  const { exchange, routed } = attempt
  const { line } = exchange.target
  attempt.hadBegun = exchange.status === 200
  const worksUnseen = exchange.connected && reasonsUnseen(routed.request, line)
  attempt.disconnect = new CallerDisconnect(routed.disconnect, exchange, worksUnseen)
}

/** Chooses what receives the body of an answer; undefined for one that is relayed, and for one that cannot be right. */
function receiverFor(attempt: RunningAttempt, head: AnswerHead): BodyReceiver | undefined {
  const { adapted, exchange, routed } = attempt
  if (head.status !== 200) {
    attempt.refusal = new BodyCollector(MAX_ERROR_BODY_BYTES)
    return attempt.refusal
  }
  const { 'content-encoding': encoding = 'identity' } = head.headers
  const type = mediaTypeOf(head)
  const isStream = type.startsWith(EVENT_STREAM)
  const { operation } = adapted
  if (encoding !== 'identity') exchange.breakOff(malformed(`encoded as ${encoding}`))
  else if (isStream !== routed.request.stream && !(operation.answerForm && isConvertible(type)))
    exchange.breakOff(malformed(`the answer has the type "${type}"`))
  else if (!isStream || !routed.request.stream) {
    attempt.body = operation.answersData ? new DataCollector() : new BodyCollector()
    if (!isAwsEventStream(head.headers)) return attempt.body
  }
  return undefined
}

function mediaTypeOf({ headers }: AnswerHead): string {
  return isAwsEventStream(headers) ? EVENT_STREAM : String(headers['content-type'] ?? '').toLowerCase()
}

/** Returns how an attempt ends, from the head of its answer on; a whole answer has come by then. */
function endOf(attempt: RunningAttempt, head: AnswerHead | undefined): MaybePromise<AnswerEnd> {
  const { exchange, body } = attempt
  if (!head) return exchange.failure ? failed(attempt, exchange.failure) : abandoned(attempt)
  if (head.status !== 200) return refused(attempt, head)
  if (isAwsEventStream(head.headers)) return receiveAwsEvents(attempt, head)
  return body ? endOfWhole(attempt, head, body) : relay(attempt, head, exchange.body)
}

/** Ends an attempt after an answer with a status other than 200, with the part of its body that came. */
function refused(attempt: RunningAttempt, { status, headers }: AnswerHead): AnswerEnd {
  const { exchange, adapted, refusal, routed } = attempt
  if (exchange.isAbandoned) return abandoned(attempt)
  if (status === 404 && routed.request.resource) return failed(attempt, goneFromLine())
  const failure = failureOfStatus(status, headers, parseErrorBody(refusal?.take().toString() ?? ''))
  // The caller did not send the members of a translated request.
  return failed(attempt, adapted.translation ? { ...failure, param: undefined } : failure)
}

/** Receives an event stream of AWS, as the stream or the whole answer that was asked for. */
async function receiveAwsEvents(attempt: RunningAttempt, head: AnswerHead): Promise<AnswerEnd> {
  const { exchange, body } = attempt
  const events = readAwsEventStream(exchange.body)
  try {
    if (!body) return await relay(attempt, head, events)
    for await (const piece of events) if (!body.push(piece)) break
    return await endOfWhole(attempt, head, body)
  } catch (error) {
    // The answer is broken, or the package that reads it is missing.
    if (error instanceof BrokenEventStream) return brokenStream(attempt, malformed(error.message))
    if (error instanceof UnsentError) return failed(attempt, connectionFailure(error, false))
    throw error
  }
}

/** Ends an attempt whose answer is not sent before it is whole. */
function endOfWhole(attempt: RunningAttempt, head: AnswerHead, body: WholeBody): MaybePromise<AnswerEnd> {
  const { exchange, routed } = attempt
  if (body.overflowed) return failed(attempt, malformed('the answer is too long'))
  if (exchange.isAbandoned) return abandoned(attempt)
  if (exchange.failure) return failed(attempt, exchange.failure)
  if (body.size <= MAX_BYTES_AT_ONCE) return readWhole(attempt, head, body)
  // The large answers of all accounts take turns.
  return nextTurn(routed.call.principal?.accountId).then(() => readWhole(attempt, head, body))
}

function readWhole(attempt: RunningAttempt, head: AnswerHead, body: WholeBody): MaybePromise<AnswerEnd> {
  const { adapted, candidate, routed } = attempt
  const answer = readWholeAnswer(body, head, routed.request, adapted, candidate)
  // Its pieces are not kept beside the whole.
  attempt.body = undefined
  attempt.finishReason = answer.reading?.finishReason
  if (answer.kind === 'failed') return failed(attempt, answer.failure)
  if (answer.kind === 'events') return relay(attempt, head, [answer.events])
  attempt.skipped = answer.skipped
  return { kind: 'served', unsent: answer.unsent, reading: answer.reading, dropped: adapted.dropped }
}

/** Relays the events of an answer, at the speed of its caller. Until the first output all of them are held back. */
async function relay(
  attempt: RunningAttempt,
  head: AnswerHead,
  pieces: AsyncIterable<Buffer> | Iterable<Buffer>,
): Promise<AnswerEnd> {
  const { exchange } = attempt
  const { relay } = beginRelay(attempt, head)
  for await (const piece of pieces) {
    const end = relay.push(piece)
    const refusal = await passOn(attempt)
    if (refusal) return refusal
    if (end) {
      exchange.leaveBody()
      return relayed(attempt, end)
    }
  }
  if (exchange.isAbandoned) return abandoned(attempt)
  return exchange.failure ? brokenStream(attempt, exchange.failure) : finishRelay(attempt, relay)
}

/** After the finish reason the answer is complete, however its stream ends. */
async function brokenStream(attempt: RunningAttempt, failure: Failure): Promise<AnswerEnd> {
  const relay = attempt.relaying?.relay
  return relay?.whole ? finishRelay(attempt, relay) : failed(attempt, failure)
}

async function finishRelay(attempt: RunningAttempt, relay: StreamRelay): Promise<AnswerEnd> {
  const end = relay.finish()
  return (await passOn(attempt)) ?? relayed(attempt, end)
}

function beginRelay(attempt: RunningAttempt, { headers }: AnswerHead): Relaying {
  const { adapted, candidate, exchange, routed } = attempt
  const { operation, translation } = adapted
  const { call, request, res } = routed
  const reader = newReader(request, adapted)
  const translator = translation?.stream(contextOf(request))
  const events =
    translator &&
    new TranslatedEvents(translator, () =>
      knownUsage(usageOfStream(request, reader, candidate), reader.usage),
    )
  const ids = translator ? undefined : UniqueIds.for(operation, request.body.json)
  const relay = new StreamRelay(reader, operation.streamTerminator ?? '', events, headers, ids)
  const caller = new CallerStream(call, res, exchange)
  const filter = joinedFilter(call.answerFilters)?.stream()
  attempt.relaying = { reader, events, relay, caller, filter, isCommitted: false }
  return attempt.relaying
}

/** Passes on what can go out. Returns the end of the attempt if the head must not be sent. */
async function passOn(attempt: RunningAttempt): Promise<AnswerEnd | undefined> {
  const relaying = attempt.relaying as Relaying
  const { relay, caller, filter } = relaying
  if (!relay.committed) return undefined
  if (!relaying.isCommitted) {
    relaying.isCommitted = true
    commit(attempt)
  }
  let pieces = relay.take()
  if (filter) {
    try {
      pieces = [await filter.push(Buffer.concat(pieces))].filter(({ length }) => length > 0)
    } catch (error) {
      // An answer that was not checked before its caller left is kept nowhere.
      if (attempt.routed.call.left) return undefined
      if (!(error instanceof GatewayError)) throw error
      attempt.exchange.abandon()
      return { ...abandoned(attempt), endedBy: error }
    }
    if (pieces.length === 0) return undefined
  }
  if (!caller.hasBegun) {
    try {
      await caller.begin(relay.atCommit, attempt.candidate.line.id)
    } catch (error) {
      attempt.exchange.abandon()
      return { ...abandoned(attempt), refusedHead: { error } }
    }
  }
  await caller.write(pieces)
  return undefined
}

/** Returns what checks the end of a stream; undefined if nothing does. */
function endCheckOf({ filter, caller, relay }: Relaying, line: string): StreamPart['checkEnd'] {
  if (!filter) return undefined
  return async (tail) => {
    const rest = await filter.end(tail)
    if (!caller.hasBegun) await caller.begin(relay.atCommit, line)
    return rest
  }
}

/** Commits the call to the line at its first output: no other line can be tried from here on. */
function commit(attempt: RunningAttempt): void {
  const { adapted, exchange, report, routed } = attempt
  const { call, res } = routed
  reportDropped(res, adapted.dropped)
  report.success()
  const endEarly = (error: GatewayError): void => {
    if (!exchange.isRunning) return
    attempt.endedBy = error
    exchange.abandon()
  }
  // A watch may end the key at once. The head goes out first, so that the stream can end with the error.
  call.keyWatch?.follow(call, (error) => queueMicrotask(() => endEarly(error)))
}

/** Reports to the caller which members its request was sent without. */
export function reportDropped(res: ServerResponse, dropped: readonly string[] | undefined): void {
  if (dropped && !res.headersSent) res.setHeader('x-gateway-dropped', dropped.join(', '))
}

function relayed(attempt: RunningAttempt, end: RelayEnd): AnswerEnd {
  if (end.kind === 'failed') return failed(attempt, end.failure)
  return {
    kind: 'served',
    unsent: end.tail,
    stream: streamPartOf(attempt),
    dropped: attempt.adapted.dropped,
  }
}

function abandoned(attempt: RunningAttempt): AbandonedEnd {
  const { exchange, body, relaying, endedBy } = attempt
  const { isRequestSent: isSent, status } = exchange
  const hadBegun = attempt.hadBegun ?? status === 200
  const left = { isSent, status, hadBegun, reader: relaying?.reader, estimateOutput: () => tokensIn(body) }
  return { kind: 'abandoned', left, endedBy, stream: streamPartOf(attempt) }
}

/** Returns the estimated tokens of the part of a plain answer that came. */
function tokensIn(body: WholeBody | undefined): number {
  return estimateTokens(body instanceof DataCollector ? body.digest : (body?.take().toString().trim() ?? ''))
}

function failed(attempt: RunningAttempt, failure: Failure): BrokenEnd {
  const committed = attempt.relaying?.relay.committed ?? false
  const elsewhere = failure.retryable && !committed
  return {
    kind: 'failed',
    failure: committed ? brokenOff(failure) : failure,
    committed,
    elsewhere,
    // Failures that say something about the line, not only about the request, its caller, or what this process lacks.
    lineFault: failure.fault !== null || (elsewhere && attempt.exchange.status !== null),
    stream: streamPartOf(attempt),
  }
}

function streamPartOf({ relaying, exchange, candidate }: RunningAttempt): StreamPart | undefined {
  if (!relaying) return undefined
  const { reader, events, caller } = relaying
  return {
    reader,
    nextEventNumber: (events ?? reader).nextEventNumber,
    hasBegun: caller.hasBegun,
    keptAtHead: caller.keptAtHead,
    checkEnd: endCheckOf(relaying, candidate.line.id),
    durationMs: exchange.durationMs - (exchange.firstByteMs ?? 0),
  }
}

function recordOf(attempt: RunningAttempt, end: AnswerEnd): AttemptRecord {
  const { adapted, exchange, relaying, routed, skipped } = attempt
  const isTranslated = adapted.translation !== undefined
  // An error may also quote what the line keeps of earlier requests.
  const mayCompare = end.kind === 'failed' && routed.request.references.length === 0
  return exchange.recordOf(end, {
    ...(isTranslated && { skipped: relaying?.events?.skipped ?? skipped }),
    dropped: adapted.dropped,
    finishReason: relaying ? relaying.reader.finishReason : attempt.finishReason,
    ...(mayCompare && { sent: adapted.body }),
  })
}
