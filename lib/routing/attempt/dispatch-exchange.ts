import type { IncomingHttpHeaders } from 'node:http'
import { Readable } from 'node:stream'
import type { Dispatcher } from 'undici'
import type { Timeouts } from '../../core/catalog/index.ts'
import type { ConnectionAware, UpstreamConnection } from '../lines/upstream-connection.ts'
import type { Transport } from '../lines/upstream-pool.ts'
import { type ContentDecoder, decoderFor } from './content-decoding.ts'
import { Exchange, type ExchangeTarget } from './exchange.ts'
import { type AttemptEnd, connectionFailure, type Failure, malformed } from './failure.ts'

/** The head of an answer. */
export interface AnswerHead {
  readonly status: number
  readonly headers: IncomingHttpHeaders
}

export interface ExchangeOptions {
  /** Defaults to those of the line. */
  readonly timeouts?: Timeouts
  /** Whether the body is read without its content encodings, as far as these are known. Defaults to true. */
  readonly decodes?: boolean
  /** Called with the milliseconds to the first byte of an answer with status 200, when it comes. */
  readonly onFirstByte?: (ms: number) => void
  /** Returns the request that takes the place of the one under way, as a redirect demands; undefined if none does. */
  readonly redirect?: (head: AnswerHead) => RedirectedRequest | undefined
}

export interface RedirectedRequest {
  readonly request: Dispatcher.DispatchOptions
  readonly transport: Transport
}

/** Receives the chunks of a body. Returns false once the body does not fit. */
export interface BodyReceiver {
  push(chunk: Buffer): boolean
}

/** Returns the receiver of a whole body, by the head of the answer; undefined if `body` is read instead. */
export type ReceiverFor = (head: AnswerHead) => BodyReceiver | undefined

/** So many bytes of an answer are taken before they are read. */
const MAX_UNREAD_BYTES = 64 * 1024
/** How long a connection may take to end its response after the answer is complete, before it is cut. */
const LINGER_MS = 1000
/** A shorter body leaves at once. */
const LONG_BODY_BYTES = 16 * 1024
const OVER = new Error('the exchange is over')

/**
 * One request sent with undici, and its answer: `send` it, read its `body`, and `conclude` what came of it.
 *
 * @example
 * const head = await exchange.send()
 * if (head) for await (const chunk of exchange.body) take(chunk)
 * if (exchange.failure) … // it broke off, or never came
 */
export class DispatchExchange extends Exchange implements ConnectionAware {
  /** Set by the pool. */
  connection: UpstreamConnection | undefined
  /** Why the answer did not come whole; undefined if it did, while it comes, or if nobody waits for it. */
  failure: Failure | undefined
  /** Whether the exchange was ended because nobody waits for its answer. */
  isAbandoned = false
  /** Called when nothing more comes of the response. */
  onOver: (() => void) | undefined
  readonly #request: Dispatcher.DispatchOptions
  readonly #transport: Transport
  readonly #decodes: boolean
  readonly #redirect: ExchangeOptions['redirect']
  readonly #onFirstByte: ExchangeOptions['onFirstByte']
  readonly #answered = Promise.withResolvers<AnswerHead | undefined>()
  #head: AnswerHead | undefined
  #receiverFor: ReceiverFor | undefined
  #receiver: BodyReceiver | undefined
  #body: Readable | undefined
  #controller: Dispatcher.DispatchController | undefined
  #decoder: ContentDecoder | undefined
  #isPaused = false
  /** Whether nothing more is taken from the response. */
  #isOver = false
  /** Whether the response has ended on its connection. */
  #hasEnded = false
  #isCut = false
  #wasSent = false
  #lingering: NodeJS.Timeout | undefined

  constructor(
    target: ExchangeTarget,
    request: Dispatcher.DispatchOptions,
    transport: Transport,
    deadline: number,
    { timeouts = target.line.timeouts, decodes = true, redirect, onFirstByte }: ExchangeOptions = {},
  ) {
    super(target, timeouts, deadline)
    this.#request = request
    this.#transport = transport
    this.#decodes = decodes
    this.#redirect = redirect
    this.#onFirstByte = onFirstByte
  }

  /**
   * Sends the request, unless the exchange was abandoned.
   *
   * @param receiverFor chooses what receives the body of the answer. Without it, `body` is read.
   * @returns the head of the answer; if its body has a receiver, once the body has ended, however it ends, or does not fit.
   * Undefined if no answer comes. Never rejects.
   */
  send(receiverFor?: ReceiverFor): Promise<AnswerHead | undefined> {
    this.#receiverFor = receiverFor
    if (!this.#isOver) this.#transport.dispatch(this.#request, this)
    return this.#answered.promise
  }

  /**
   * The body of the answer. The upstream sends as fast as it is read. It ends with the response, however that ends: only
   * `failure` and `isAbandoned` show whether it is whole.
   */
  get body(): Readable {
    if (!this.#body) {
      this.#body = new Readable({ highWaterMark: MAX_UNREAD_BYTES, read: () => this.#resume() })
      if (this.#isOver) this.#body.push(null)
    }
    return this.#body
  }

  /**
   * Ends the reading of `body` before its end. A loop that is left without this ends it with an error, whose stack takes as long
   * as a dozen events.
   */
  leaveBody(): void {
    this.#body?.destroy()
  }

  /** Whether the line has the whole request, as far as is known. */
  get isRequestSent(): boolean {
    if (this.status !== null) return true
    return this.isAbandoned ? this.#wasSent : this.connected && this.connection?.hasSent !== false
  }

  /** Whether the response is still awaited or read. */
  get isRunning(): boolean {
    return !this.#isOver
  }

  abandon(): void {
    if (this.#isOver) return
    // Later, the connection may carry another request.
    this.#wasSent = this.isRequestSent
    this.isAbandoned = true
    this.#endResponse()
    this.#cut()
  }

  breakOff(failure: Failure): void {
    if (this.#isOver) return
    this.#endResponse(failure)
    this.#cut()
  }

  /**
   * Ends the exchange with what came of it. If the rest of the response is not wanted, its connection is cut.
   *
   * @param mayEnd whether the response may still end by itself, so that its connection can be reused.
   */
  conclude(end: AttemptEnd, mayEnd = false): void {
    this.#endResponse()
    if (!this.count(end)) return
    if (mayEnd) this.#linger()
    else this.#cut()
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    if (this.#isOver) {
      controller.abort(OVER)
      return
    }
    this.#controller = controller
    this.connection?.begin()
    this.noteConnected()
  }

  onRequestSent(): void {
    this.connection?.noteWritten()
  }

  onResponseStart(
    controller: Dispatcher.DispatchController,
    status: number,
    headers: IncomingHttpHeaders,
  ): void {
    // 1xx are not the answer.
    if (this.#isOver || status < 200 || controller !== this.#controller) return
    if (status === 401 && this.#transport.signsAnew?.(this)) {
      this.#dispatchInstead(this.#request, this.#transport)
      return
    }
    this.status = status
    const next = this.#redirect?.({ status, headers })
    if (next) {
      this.#dispatchInstead(next.request, next.transport)
      return
    }
    if (headers['content-encoding'] !== undefined && this.#decodes) this.#decode(headers)
    const head = { status, headers }
    this.#receiver = this.#receiverFor?.(head)
    this.#head = head
    if (!this.#receiver) this.#answered.resolve(head)
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#isOver || controller !== this.#controller) return
    const isFirst = this.firstByteMs === null
    this.noteProgress()
    if (isFirst && this.status === 200) this.#onFirstByte?.(this.firstByteMs ?? 0)
    if (this.#decoder) this.#decoder.write(chunk)
    else this.#add(chunk)
  }

  onResponseEnd(controller: Dispatcher.DispatchController): void {
    if (controller !== this.#controller) return
    this.#hasEnded = true
    clearTimeout(this.#lingering)
    const { body } = this.#request
    // Some upstreams answer before they have read the request.
    if (Buffer.isBuffer(body) && body.length > LONG_BODY_BYTES) this.connection?.closeUnsent()
    if (this.#decoder) this.#decoder.end()
    else this.#endResponse()
  }

  onResponseError(controller: Dispatcher.DispatchController | null, error: Error): void {
    if ((controller ?? undefined) !== this.#controller) return
    this.#hasEnded = true
    clearTimeout(this.#lingering)
    if (this.#isOver) return
    if (this.#wasDead()) this.#resend()
    else if (this.#decoder && this.status !== null)
      this.#decoder.cut(() => this.breakOff(connectionFailure(error, false)))
    else this.breakOff(connectionFailure(error, this.connecting))
  }

  #dispatchInstead(request: Dispatcher.DispatchOptions, transport: Transport): void {
    const controller = this.#controller
    this.#controller = undefined
    this.connection = undefined
    controller?.abort(OVER)
    this.noteReconnecting()
    transport.dispatch(request, this)
  }

  /**
   * Whether the connection had been kept alive, and closed before the last byte of the request was written and before anything
   * of an answer came. Once the whole request is written, the line may have acted on it.
   */
  #wasDead(): boolean {
    if (!this.connection || this.status !== null || this.resent) return false
    const { requests, hasSent, hasReceived } = this.connection
    // Undici also ends requests that wait for a connection at the moment at which it breaks.
    if (!this.#controller) return requests > 0
    return requests > 1 && !hasSent && !hasReceived
  }

  /** Sends the request once more, over a fresh connection. */
  #resend(): void {
    this.resent = true
    this.#hasEnded = false
    this.#controller = undefined
    this.connection = undefined
    this.noteReconnecting()
    this.#transport.dispatchFresh(this.#request, this)
  }

  /** Reads the body through its content encodings. The head then names none. */
  #decode(headers: IncomingHttpHeaders): void {
    const decoder = decoderFor(headers['content-encoding'], {
      decoded: (chunk) => this.#add(chunk),
      ended: () => this.#endResponse(),
      failed: (detail) => this.breakOff(malformed(detail)),
    })
    if (decoder === undefined) return
    delete headers['content-encoding']
    this.#decoder = decoder ?? undefined
  }

  /** Adds a chunk to the body. The response is paused while enough of them are unread. */
  #add(chunk: Buffer): void {
    if (this.#isOver) return
    if (this.#receiver) {
      if (!this.#receiver.push(chunk)) this.#answered.resolve(this.#head)
    } else if (!this.body.push(chunk)) this.#pause()
  }

  #pause(): void {
    this.#isPaused = true
    this.#controller?.pause()
    this.#decoder?.pause()
    this.pauseClocks()
  }

  #resume(): void {
    if (!this.#isPaused) return
    this.#isPaused = false
    this.resumeClocks()
    this.#decoder?.resume()
    this.#controller?.resume()
  }

  /** Takes nothing more from the response. */
  #endResponse(failure?: Failure): void {
    if (this.#isOver) return
    this.#isOver = true
    this.failure = failure
    this.noteOver()
    this.#decoder?.close()
    this.#answered.resolve(this.#head)
    this.#body?.push(null)
    this.onOver?.()
  }

  #cut(): void {
    if (this.#hasEnded || this.#isCut) return
    this.#isCut = true
    this.#controller?.abort(OVER)
  }

  #linger(): void {
    const controller = this.#controller
    if (!controller || this.#hasEnded) return
    if (controller.paused) controller.resume()
    this.#lingering = setTimeout(() => controller.abort(OVER), LINGER_MS).unref()
  }
}
