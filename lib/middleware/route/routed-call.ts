import type { IncomingHttpHeaders, ServerResponse } from 'node:http'
import type { NextFunction } from 'express'
import type { AnswerBytes, AttemptRecord, Call, CallRequest } from '../../core/call/index.ts'
import { GatewayError } from '../../core/errors/index.ts'
import type { KeptName } from '../../core/operations/index.ts'
import { type Translation, Untranslatable } from '../../core/translate/index.ts'
import { type AdaptedRequest, RequestAdapter } from '../../routing/attempt/adapted-request.ts'
import { Departure, type DisconnectPolicy } from '../../routing/attempt/departure.ts'
import { DispatchExchange } from '../../routing/attempt/dispatch-exchange.ts'
import { upstreamRequest } from '../../routing/attempt/upstream-request.ts'
import type { AttemptPass, AttemptPolicy } from '../../routing/attempt-policy.ts'
import type { Candidate } from '../../routing/candidates/candidate.ts'
import type { WalkEnd } from '../../routing/try-candidates.ts'
import { type AnswerEnd, COMPLETED, outcomeOf, type StreamOpener } from './attempt/answer-end.ts'
import { AnswerHandler } from './attempt/answer-handler.ts'
import { AnswerKeeping } from './attempt/answer-keeping.ts'
import { reasonsUnseen, usageOfLeft } from './attempt/left-usage.ts'
import { usageOfAnswer, usageOfStream } from './attempt/metering.ts'
import { writePieces } from './relay/answer-pieces.ts'
import { CallerStream, type StreamOwner } from './relay/caller-stream.ts'
import type { RelaySink } from './relay/stream-relay.ts'

/** Replaces the default message, which says to retry: a retry would produce and charge the output again. */
const BROKEN_OFF =
  'The upstream broke the answer off. Keep what has come: it is billed, and the whole request sent again is billed again.'

/** Serves one model call: adapts the request for each candidate, and sends the answer to the caller. */
export class RoutedCall implements AttemptPolicy<AnswerEnd>, WalkEnd, StreamOpener, StreamOwner {
  readonly request: CallRequest
  readonly done: () => void
  departure: Departure | undefined
  readonly #call: Call
  readonly #inbound: IncomingHttpHeaders
  readonly #res: ServerResponse
  readonly #next: NextFunction
  readonly #options: DisconnectPolicy
  #adapter: RequestAdapter | undefined
  #adapted: AdaptedRequest
  #exchange: DispatchExchange<AnswerEnd> | undefined
  #handler: AnswerHandler | undefined
  #pass: AttemptPass | undefined
  #keeping: AnswerKeeping | undefined
  #stream: CallerStream | undefined
  /** Why the stream was ended before its end. */
  #endedBy: GatewayError | undefined

  /** Keeps the call open until it is done or has failed. */
  constructor(
    call: Call,
    request: CallRequest,
    inbound: IncomingHttpHeaders,
    res: ServerResponse,
    next: NextFunction,
    options: DisconnectPolicy,
  ) {
    this.#call = call
    this.request = request
    this.#inbound = inbound
    this.#res = res
    this.#next = next
    this.#options = options
    this.done = call.hold()
    this.#adapted = request
    call.onLeave(() => this.#leave())
  }

  /** @param translations the translations that some of the candidates need. */
  translateBy(translations: readonly Translation[]): void {
    this.#adapter = new RequestAdapter(this.request, translations)
  }

  failed(error: unknown): void {
    const call = this.#call
    try {
      if (!call.left) this.#next(error instanceof GatewayError ? call.stamp(error) : error)
      else if (!(error instanceof GatewayError)) throw error
    } catch (fault) {
      call.logger.error({ err: fault, requestId: call.id }, 'routing failed')
    }
    this.done()
  }

  prepare(candidate: Candidate): Untranslatable | undefined {
    if (!this.#adapter) return undefined
    const adapted = this.#adapter.for(candidate)
    if (adapted instanceof Untranslatable) return adapted
    this.#adapted = adapted
    return undefined
  }

  attempt(candidate: Candidate, pass: AttemptPass<AnswerEnd>, deadline: number): undefined {
    const upstream = upstreamRequest(candidate, this.request, this.#adapted, this.#inbound)
    this.#exchange = new DispatchExchange<AnswerEnd>(candidate, upstream, candidate.state.wire, deadline)
    this.#exchange.account = this.#call.principal?.accountId
    this.#handler = new AnswerHandler(this.request, this.#adapted, candidate, this)
    this.#pass = pass
    this.#keeping = undefined
    this.#stream = undefined
    this.#exchange.start(this.#handler, pass)
  }

  get record(): AttemptRecord | undefined {
    const exchange = this.#exchange
    if (exchange && this.#handler && this.#adapted.translation) {
      exchange.skipped = this.#handler.skipped
      exchange.dropped = this.#adapted.dropped
    }
    // An error may also quote what the line keeps of earlier requests.
    if (exchange?.end?.kind === 'failed' && this.request.references.length === 0)
      exchange.sent = this.#adapted.body
    return exchange?.record
  }

  /** Opens the caller's stream. The caller may have left by now. */
  openStream(): RelaySink {
    const exchange = this.#exchange as DispatchExchange<AnswerEnd>
    this.#stream = new CallerStream(this.#res, exchange, this)
    if (this.departure) this.#stream.discard()
    return this.#stream
  }

  /** Measures the line's speed when the first bytes come: a long answer would tell of it too late. */
  onFirstByte(): void {
    const { firstByteMs, target } = this.#exchange as DispatchExchange<AnswerEnd>
    if (firstByteMs !== null) target.state?.observeFirstByte(firstByteMs)
  }

  onCommit(): void {
    if (this.#adapted.dropped) this.#tell(this.#adapted.dropped)
    this.#pass?.success()
    // A watch may say at once that the key is over. The head goes out first, so that the stream can end with the error.
    this.#call.keyWatch?.follow(this.#call, (error) => queueMicrotask(() => this.#endEarly(error)))
  }

  /** Ends a running stream. What it has produced is charged. */
  #endEarly(error: GatewayError): void {
    const exchange = this.#exchange
    if (!exchange || exchange.end) return
    this.#endedBy = error
    exchange.abandon()
  }

  beforeHead(): Promise<void> | undefined {
    const reader = this.#handler?.reader
    if (!this.#call.keepAnswer || !reader?.kept?.length || !this.#exchange) return undefined
    this.#keeping = new AnswerKeeping(this.#call, this.#exchange.target.line.id)
    return this.#keeping.beforeHead(reader.kept, reader.estimatedOutput)
  }

  keepUnsent(bytes: AnswerBytes): void {
    this.#call.idempotency?.keep(bytes)
  }

  /** Meters the usage, settles the call, and sends the last bytes. */
  finish(end: AnswerEnd, candidate: Candidate): Promise<void> | undefined {
    const opened = this.#stream?.opened
    if (opened) return this.#finishOpened(opened, end, candidate)
    this.#meter(end, candidate)
    if (!this.#call.keepAnswer || end.kind !== 'served') return this.#settle(end)
    const made = (end.reader ?? end.reading)?.kept ?? []
    return made.length === 0 ? this.#settle(end) : this.#settleKept(end, made, candidate)
  }

  async #finishOpened(opened: Promise<void>, end: AnswerEnd, candidate: Candidate): Promise<void> {
    this.#stream = undefined
    await opened
    await this.finish(end, candidate)
  }

  /** Ends or drains the running attempt because the caller has left. */
  #leave(): void {
    const exchange = this.#exchange
    if (!exchange || exchange.end) return
    const worksUnseen = exchange.connected && reasonsUnseen(this.request, exchange.target.line)
    this.departure = new Departure(this.#options, worksUnseen)
    // A stream that has waited is read on at once, and its end may have come already.
    this.#stream?.discard()
    if (!exchange.end) this.departure.from(exchange)
  }

  /** Records the usage of the call and the speed of the line. */
  #meter(end: AnswerEnd, candidate: Candidate): void {
    const { state, line, price } = candidate
    const call = this.#call
    const { reader } = end
    if (reader) call.nextEventNumber = this.#handler?.nextEventNumber
    if (this.request.operation.priceUnit !== 'none') call.servedBy = { line: line.id, price, cost: line.cost }
    if (end.kind === 'abandoned') {
      const isKeyed = call.idempotency?.claim != null
      const exchange = this.#exchange as DispatchExchange<AnswerEnd>
      if (call.servedBy) call.usage = usageOfLeft(this.request, reader, candidate, exchange, isKeyed)
      return
    }
    if (reader) call.usage = usageOfStream(this.request, reader, candidate)
    if (end.kind === 'failed') return
    if (end.reading && call.servedBy) call.usage = usageOfAnswer(this.request, end.reading, candidate)
    const { firstByteMs, durationMs } = this.#exchange as DispatchExchange<AnswerEnd>
    if (reader && call.usage)
      state.observeThroughput(call.usage.outputTokens, durationMs - (firstByteMs ?? 0))
  }

  /** Records what the line keeps of the answer, then settles. If that fails, the answer is neither sent nor charged. */
  async #settleKept(end: AnswerEnd, made: readonly KeptName[], { line }: Candidate): Promise<void> {
    this.#keeping ??= new AnswerKeeping(this.#call, line.id)
    try {
      await this.#keeping.beforeEnd(made)
    } catch (error) {
      if (!end.reader) this.#call.usage = null
      throw error
    }
    await this.#settle(end)
  }

  /** Settles the call, without waiting if nothing has to be made durable. */
  #settle(end: AnswerEnd): Promise<void> | undefined {
    const isWhole = end.kind === 'served' && !this.#call.left
    const outcome = isWhole ? COMPLETED : outcomeOf(end, this.#call.left, this.#endedBy)
    const settling = this.#call.settle({ outcome, unsent: end.kind === 'served' ? end.unsent : null })
    if (settling) return this.#sendSettled(settling, end)
    this.#send(end)
    return undefined
  }

  async #sendSettled(settling: Promise<void>, end: AnswerEnd): Promise<void> {
    try {
      await settling
    } catch (error) {
      // The unsent bytes belong to the answer that an Idempotency-Key stores.
      if (end.kind === 'served') this.keepUnsent(end.unsent)
      throw error
    }
    this.#send(end)
  }

  /** Sends the last bytes, after settling. */
  #send(end: AnswerEnd): void {
    if (end.kind === 'failed') throw new GatewayError(end.failure.code, { message: BROKEN_OFF })
    if (end.kind === 'abandoned' && this.#endedBy) throw this.#endedBy
    if (end.kind === 'abandoned') return
    this.#call.prove()
    if (this.#call.left) this.keepUnsent(end.unsent)
    else if (end.reader) this.#res.end(end.unsent)
    else {
      if (this.#adapted.dropped) this.#tell(this.#adapted.dropped)
      this.#res.statusCode = 200
      this.#res.setHeader('content-type', 'application/json')
      // Node adds the length.
      if (typeof end.unsent === 'string' || Buffer.isBuffer(end.unsent)) this.#res.end(end.unsent)
      else writePieces(this.#res, end.unsent)
      // The call may live on for minutes, until its caller has read the answer.
      end.unsent = ''
      end.reading = undefined
    }
  }

  /** Tells the caller what its request was sent without. */
  #tell(dropped: readonly string[]): void {
    if (!this.#res.headersSent) this.#res.setHeader('x-gateway-dropped', dropped.join(', '))
  }
}
