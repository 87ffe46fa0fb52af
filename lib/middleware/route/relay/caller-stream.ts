import type { ServerResponse } from 'node:http'
import type { OpenCall } from '../../../core/call/index.ts'
import type { DispatchExchange } from '../../../routing/attempt/dispatch-exchange.ts'
import type { Begun } from './stream-relay.ts'

/** The caller's side of a stream. Bytes that a caller who has left does not get go to the stored answer of its key. */
export class CallerStream {
  readonly #call: OpenCall
  readonly #res: ServerResponse
  readonly #source: Pick<DispatchExchange, 'isRunning' | 'onOver'>
  /** Whether the stream has begun: no other line can be tried from then on. */
  hasBegun = false
  /** How many things that the line keeps were recorded before the head. */
  keptAtHead = 0

  /** @param source the exchange that the stream comes from. A slow caller is waited for only while it runs. */
  constructor(call: OpenCall, res: ServerResponse, source: Pick<DispatchExchange, 'isRunning' | 'onOver'>) {
    this.#call = call
    this.#res = res
    this.#source = source
  }

  /**
   * Sends the head, unless the caller has left. If the line keeps something of the answer, it is recorded first, so that
   * later requests that name it find the line. Its usage is unknown; the tokens produced so far stand in.
   *
   * @throws an error if it cannot be recorded: the head must not be sent then.
   */
  async begin({ kept, estimatedOutput }: Begun, line: string): Promise<void> {
    this.hasBegun = true
    const call = this.#call
    if (call.left) return
    if (call.keepAnswer && kept.length > 0) {
      this.keptAtHead = kept.length
      const tokens = (call.request?.estimatedInputTokens ?? 0) + estimatedOutput
      await call.keepAnswer({ made: kept, line, tokens })
      if (call.left) return
    }
    this.#res.writeHead(200, {
      'content-type': 'text/event-stream; charset=utf-8',
      // A proxy that compresses the stream would delay events.
      'cache-control': 'no-cache, no-transform',
      'x-accel-buffering': 'no',
    })
  }

  /** Writes pieces. Resolves when the caller can take more, or there is nothing more to wait for. */
  async write(pieces: readonly Buffer[]): Promise<void> {
    let hasRoom = true
    for (const bytes of pieces) {
      if (this.#call.left) this.#call.idempotency?.keep(bytes)
      else hasRoom = this.#res.write(bytes)
    }
    if (!hasRoom && this.#source.isRunning && !this.#call.left) await this.#drained()
  }

  /** Resolves when the response has room, is closed, or the exchange is over. */
  #drained(): Promise<void> {
    return new Promise((resolve) => {
      const end = (): void => {
        this.#res.off('drain', end).off('close', end)
        this.#source.onOver = undefined
        resolve()
      }
      this.#res.on('drain', end).on('close', end)
      this.#source.onOver = end
    })
  }
}
