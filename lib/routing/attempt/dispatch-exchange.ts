import type { IncomingHttpHeaders } from 'node:http'
import type { Dispatcher } from 'undici'
import type { Timeouts } from '../../core/catalog/index.ts'
import { MAX_BYTES_AT_ONCE, takeTurn } from '../../core/turns/index.ts'
import type { ConnectionAware, WatchedConnection } from '../lines/upstream-connection.ts'
import type { Wire } from '../lines/upstream-pool.ts'
import { AWS_EVENT_STREAM, AwsEventStream } from './aws-event-stream.ts'
import { type BodyDecoder, type DecodedBody, decoderFor } from './content-decoding.ts'
import { Exchange, type ExchangeTarget } from './exchange.ts'
import { connectionFailure, type ExchangeEnd, type Failure, malformed } from './failure.ts'

/** Receives a response as it arrives. Each method returns the end of the exchange once there is one. */
export interface ResponseHandler<End> {
  /** Whether it is given the body without its content encodings, as far as these are known. */
  readonly decodes?: boolean
  /** Takes the head. */
  start(status: number, headers: IncomingHttpHeaders): End | undefined
  /**
   * Takes a chunk of the body.
   *
   * @returns true when {@link flush} has to be called at the end of this turn of the event loop.
   */
  push(chunk: Buffer): boolean
  /** Processes the chunks of this turn. */
  flush(): End | undefined
  /** Handles the regular end of the response. */
  finish(): End
  /** Handles a response that broke off or never came. */
  breakOff(failure: Failure): End
  /** Ends the exchange because nobody waits for its answer. */
  abandon(): End
}

/** Waits for the end of an exchange. */
export interface EndReceiver<End> {
  ended(end: End): void
}

/** How long a connection may take to end its response after the answer is complete, before it is cut. */
const LINGER_MS = 1000
/** A shorter body leaves at once. */
const LONG_BODY_BYTES = 16 * 1024
const OVER = new Error('the exchange is over')

/** One request sent with undici, and its answer. */
export class DispatchExchange<End extends ExchangeEnd> extends Exchange<End> implements ConnectionAware {
  /** Set by the pool. */
  connection: WatchedConnection | undefined
  /** The account that the answer is for: large answers are read for each account in turn. */
  account: string | undefined
  readonly #request: Dispatcher.DispatchOptions
  readonly #wire: Wire
  #handler: ResponseHandler<End> | undefined
  #receiver: EndReceiver<End> | undefined
  #controller: Dispatcher.DispatchController | undefined
  #onReusedConnection = false
  #decoder: BodyDecoder | undefined
  #responseOver = false
  #bytes = 0
  /** Whether the whole answer has come and waits for its turn. */
  #isWaiting = false
  #lingering: NodeJS.Timeout | undefined

  constructor(
    target: ExchangeTarget,
    request: Dispatcher.DispatchOptions,
    wire: Wire,
    deadline: number,
    timeouts: Timeouts = target.line.timeouts,
  ) {
    super(target, timeouts, deadline)
    this.#request = request
    this.#wire = wire
  }

  /**
   * Sends the request. Resolves when the exchange has ended. Never rejects.
   *
   * @param isWanted if false, the exchange is abandoned before anything is sent.
   */
  run(handler: ResponseHandler<End>, isWanted = true): Promise<End> {
    const { ended } = this
    if (isWanted) this.start(handler)
    else {
      this.#handler = handler
      this.abandon()
    }
    return ended
  }

  /**
   * Sends the request.
   *
   * @param receiver is told the end, which may come at once. A promise would take four times the memory.
   */
  start(handler: ResponseHandler<End>, receiver?: EndReceiver<End>): void {
    this.#handler = handler
    this.#receiver = receiver
    this.#wire.dispatch(this.#request, this)
  }

  /** Replaces the request under way by another, as a redirect demands. */
  follow(request: Dispatcher.DispatchOptions, wire: Wire): void {
    const controller = this.#controller
    this.#controller = undefined
    controller?.abort(OVER)
    this.noteReconnecting()
    wire.dispatch(request, this)
  }

  /** Stops reading while the caller is slower than the upstream. */
  pause(): void {
    this.#controller?.pause()
    this.#decoder?.pause()
    this.pauseClocks()
  }

  resume(): void {
    this.resumeClocks()
    this.#decoder?.resume()
    this.#controller?.resume()
  }

  abandon(): void {
    if (this.#isWaiting) this.#finish()
    else if (!this.end && this.#handler) this.#end(this.#handler.abandon(), true)
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    if (this.end) {
      controller.abort(OVER)
      return
    }
    this.#controller = controller
    const { body } = this.#request
    const bytes = Buffer.isBuffer(body) ? body.length : 0
    // A request that is sent again goes over a fresh connection.
    this.#onReusedConnection = this.connection?.begin(bytes) ?? false
    this.noteConnected()
  }

  onResponseStart(
    controller: Dispatcher.DispatchController,
    status: number,
    headers: IncomingHttpHeaders,
  ): void {
    // 1xx are not the answer.
    if (this.end || status < 200 || controller !== this.#controller) return
    if (status === 401 && this.#wire.signsAnew?.(this)) {
      this.follow(this.#request, this.#wire)
      return
    }
    this.status = status
    if (headers['content-encoding'] !== undefined && this.#handler?.decodes) this.#decode(headers)
    else if (headers['content-type'] === AWS_EVENT_STREAM && this.#handler?.decodes)
      this.#decodeEvents(headers)
    const end = this.#handler?.start(status, headers)
    if (end) this.#end(end, true)
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.end || controller !== this.#controller) return
    this.noteProgress()
    this.#bytes += chunk.length
    if (this.#decoder) this.#decoder.write(chunk)
    else if (this.#handler?.push(chunk)) queueMicrotask(() => this.#flush())
  }

  /** Reads the body through its content encodings. The head then names none. */
  #decode(headers: IncomingHttpHeaders): void {
    const decoder = decoderFor(headers['content-encoding'], this.#decoded)
    if (decoder === undefined) return
    delete headers['content-encoding']
    this.#decoder = decoder ?? undefined
  }

  /** Reads an event stream of AWS as one of server-sent events. */
  #decodeEvents(headers: IncomingHttpHeaders): void {
    headers['content-type'] = 'text/event-stream'
    this.#decoder = new AwsEventStream(this.#decoded)
  }

  get #decoded(): DecodedBody {
    return {
      decoded: (chunk) => {
        this.#bytes += chunk.length
        if (!this.end && this.#handler?.push(chunk)) this.#flush()
      },
      ended: () => this.#finish(),
      failed: (detail) => this.breakOff(malformed(detail)),
    }
  }

  /** Reads the whole answer; a large one in its turn. */
  #finish(): void {
    if (this.#bytes > MAX_BYTES_AT_ONCE && !this.#isWaiting) {
      this.#isWaiting = true
      this.stopClocks()
      takeTurn(this.account, () => this.#finish())
    } else if (!this.end && this.#handler) this.#end(this.#handler.finish(), false)
  }

  onResponseEnd(controller: Dispatcher.DispatchController): void {
    if (controller !== this.#controller) return
    this.#responseOver = true
    clearTimeout(this.#lingering)
    const { body } = this.#request
    // Some upstreams answer before they have read the request.
    if (Buffer.isBuffer(body) && body.length > LONG_BODY_BYTES) this.connection?.closeUnsent()
    if (this.#decoder) this.#decoder.end()
    else this.#finish()
  }

  onResponseError(controller: Dispatcher.DispatchController | null, error: Error): void {
    if ((controller ?? undefined) !== this.#controller) return
    this.#responseOver = true
    clearTimeout(this.#lingering)
    if (this.end) return
    if (this.#onReusedConnection && this.status === null && this.connection?.wasDead) this.#resend()
    else if (this.#decoder && this.status !== null)
      this.#decoder.cut(() => this.breakOff(connectionFailure(error, false)))
    else this.breakOff(connectionFailure(error, this.connecting))
  }

  /** Sends the request once more: the upstream had closed the kept-alive connection before it could read it. */
  #resend(): void {
    this.resent = true
    this.#responseOver = false
    this.#controller = undefined
    this.noteReconnecting()
    this.#wire.dispatchFresh(this.#request, this)
  }

  protected breakOff(failure: Failure): void {
    if (!this.end && this.#handler) this.#end(this.#handler.breakOff(failure), true)
  }

  #flush(): void {
    if (this.end) return
    const end = this.#handler?.flush()
    if (end) this.#end(end, end.kind !== 'served')
  }

  /**
   * @param cut whether the connection is cut. If not, the response may still end by itself, and the connection can be
   * reused.
   */
  #end(end: End, cut: boolean): void {
    if (!this.conclude(end)) return
    this.#decoder?.close()
    const controller = this.#controller
    if (controller && !this.#responseOver) {
      if (cut) controller.abort(OVER)
      else this.#linger(controller)
    }
    this.#receiver?.ended(end)
  }

  #linger(controller: Dispatcher.DispatchController): void {
    if (controller.paused) controller.resume()
    this.#lingering = setTimeout(() => controller.abort(OVER), LINGER_MS).unref()
  }
}
