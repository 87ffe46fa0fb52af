import type { ServerResponse } from 'node:http'
import {
  type AnswerBytes,
  type CallOutcome,
  joinedFilter,
  type KeptAnswer,
  type OpenCall,
} from '../../../core/call/index.ts'
import { GatewayError } from '../../../core/errors/index.ts'
import type { Candidate } from '../../../routing/candidates/candidate.ts'
import type { DecidingAttempt } from '../../../routing/try-candidates.ts'
import { usageOfLeft } from './abandoned-usage.ts'
import { type AnswerEnd, type RoutedCall, reportDropped, type ServedEnd } from './attempt.ts'
import { usageOfAnswer, usageOfStream } from './metering.ts'

/** Replaces the default message, which says to retry: a retry would produce and charge the output again. */
const BROKEN_OFF =
  'The upstream ended the answer early. The part you received is billed; sending the request again is billed again.'

/** The outcome of an answer that was served whole. */
const COMPLETED: CallOutcome = { status: 200, errorCode: null, finish: 'completed' }

/**
 * Completes a call with the attempt that decided it: meters the usage, records what the line keeps, settles, and sends the
 * last bytes.
 *
 * @throws an error if the answer must not be completed, or was broken off.
 */
export async function finishCall(
  routed: RoutedCall,
  { candidate, result }: DecidingAttempt<AnswerEnd>,
): Promise<void> {
  const { call, res } = routed
  let end: AnswerEnd = result
  if (end.kind === 'abandoned' && end.refusedHead) throw end.refusedHead.error
  // A filter has held back all output, so that the caller got nothing, and is not charged.
  if (end.kind === 'failed' && !end.stream?.hasBegun && !call.left) throw new GatewayError(end.failure.code)
  meter(routed, end, candidate)
  warnBounded(call, candidate)
  if (end.kind === 'served' && isChecked(routed, end)) {
    try {
      end = await checked(routed, end)
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error
      // The output is charged, although its caller must not have it.
      await call.settle({
        outcome: refusedOutcome(error, res.headersSent),
        unsent: envelopeOf(routed, error),
      })
      throw error
    }
  }
  if (end.kind === 'served') {
    const made = (end.stream?.reader ?? end.reading)?.kept ?? []
    if (made.length > 0) await keepAnswer(call, end, candidate, made)
  }
  const unsent = unsentOf(routed, end)
  try {
    await call.settle({ outcome: outcomeOf(end, call.left, res.headersSent), unsent })
  } catch (error) {
    // The unsent bytes still belong to the answer that an Idempotency-Key stores.
    if (unsent !== null) call.idempotency?.keep(unsent)
    throw error
  }
  if (end.kind === 'failed') throw new GatewayError(end.failure.code, { message: BROKEN_OFF })
  if (end.kind === 'served') send(routed, end)
  else if (end.endedBy) throw end.endedBy
}

/** Whether filters check the answer. Those that are no chat are vectors, images and ranks. */
function isChecked({ call, request }: RoutedCall, { stream }: ServedEnd): boolean {
  return stream
    ? stream.checkEnd !== undefined
    : call.answerFilters.length > 0 && request.model.kind === 'chat'
}

/** Passes the answer through the filters of the call. Throws if the caller must not have it. */
async function checked({ call }: RoutedCall, end: ServedEnd): Promise<ServedEnd> {
  const bytes = bytesOf(end.unsent)
  if (end.stream?.checkEnd) return { ...end, unsent: await end.stream.checkEnd(bytes) }
  const filter = joinedFilter(call.answerFilters)
  return filter ? { ...end, unsent: await filter.whole(bytes.toString(), 'application/json') } : end
}

function bytesOf(answer: AnswerBytes): Buffer {
  if (Buffer.isBuffer(answer)) return answer
  return typeof answer === 'string' ? Buffer.from(answer) : Buffer.concat(answer)
}

/** Returns the outcome of a call whose answer, or the rest of it, its caller must not have. */
function refusedOutcome({ status, code }: GatewayError, isBegun: boolean): CallOutcome {
  if (code === 'client_closed_request') return { status, errorCode: code, finish: 'interrupted' }
  return isBegun
    ? { status: 200, errorCode: code, finish: 'interrupted' }
    : { status, errorCode: code, finish: 'failed' }
}

/** Returns the bytes that its caller gets after settling; null if there are none. */
function unsentOf(routed: RoutedCall, end: AnswerEnd): AnswerBytes | null {
  if (end.kind === 'served') return end.unsent
  return end.kind === 'abandoned' && end.endedBy ? envelopeOf(routed, end.endedBy) : null
}

/** Returns the error that is answered in place of an output that is charged; null if it can no longer be. */
function envelopeOf({ call, res }: RoutedCall, error: GatewayError): AnswerBytes | null {
  if (res.headersSent || call.left) return null
  return JSON.stringify(call.protocol.errorBody(call.stamp(error), call.id))
}

/** Records the usage of the call and the speed of the line. */
function meter({ call, request }: RoutedCall, end: AnswerEnd, candidate: Candidate): void {
  const { state, line, price } = candidate
  const { stream } = end
  if (stream) call.nextEventNumber = stream.nextEventNumber
  if (request.operation.priceUnit !== 'none') call.servedBy = { line: line.id, price, cost: line.cost }
  if (end.kind === 'abandoned') {
    const isKeyed = call.idempotency?.claim != null
    if (call.servedBy) call.usage = usageOfLeft(request, candidate, end.left, isKeyed)
    return
  }
  if (stream) call.usage = usageOfStream(request, stream.reader, candidate)
  if (end.kind === 'failed') return
  if (end.reading && call.servedBy) call.usage = usageOfAnswer(request, end.reading, candidate)
  if (stream && call.usage) state.observeThroughput(call.usage.outputTokens, stream.durationMs)
}

function warnBounded({ id: requestId, usage, logger }: OpenCall, { line }: Candidate): void {
  if (usage?.source !== 'bounded') return
  const { reported, ...counted } = usage
  logger.warn({ requestId, line: line.id, reported, counted }, 'a line reported more than can have been used')
}

/** Records what the line keeps of an answer. If that fails, the answer is neither sent nor charged. */
async function keepAnswer(
  call: OpenCall,
  { stream }: ServedEnd,
  { line }: Candidate,
  made: KeptAnswer['made'],
): Promise<void> {
  const { usage } = call
  const tokens = usage ? usage.inputTokens + usage.outputTokens : 0
  const recording = call.keepAnswer?.({ made, line: line.id, tokens })
  // Only the size is new, so the end need not wait. The store's guard logs errors.
  if (made.length <= (stream?.keptAtHead ?? 0)) recording?.catch(() => {})
  else
    try {
      await recording
    } catch (error) {
      if (!stream) call.usage = null
      throw error
    }
}

/** Returns the outcome of a call whose answer has ended so. */
function outcomeOf(end: AnswerEnd, left: boolean, isBegun: boolean): CallOutcome {
  if (end.kind === 'abandoned' && end.endedBy) return refusedOutcome(end.endedBy, isBegun)
  const code = end.kind === 'failed' ? end.failure.code : undefined
  if (code) return { status: 200, errorCode: code, finish: 'interrupted' }
  return left ? { status: 499, errorCode: 'client_closed_request', finish: 'interrupted' } : COMPLETED
}

/** Sends the last bytes, after settling. */
function send({ call, res }: RoutedCall, { stream, unsent, dropped }: ServedEnd): void {
  call.assertOwnsClaim()
  if (call.left) call.idempotency?.keep(unsent)
  else if (stream) res.end(unsent)
  else {
    reportDropped(res, dropped)
    res.statusCode = 200
    res.setHeader('content-type', 'application/json')
    writeWhole(res, unsent)
  }
}

/** Sends a whole answer. Its pieces are not joined, so that nothing large is in memory twice. */
function writeWhole(res: ServerResponse, answer: AnswerBytes): void {
  // Node adds the length.
  if (typeof answer === 'string' || Buffer.isBuffer(answer)) {
    res.end(answer)
    return
  }
  res.setHeader(
    'content-length',
    answer.reduce((sum, piece) => sum + piece.length, 0),
  )
  for (const piece of answer.slice(0, -1)) res.write(piece)
  res.end(answer.at(-1))
}
