import type { Call } from '../../core/call/index.ts'
import { GatewayError } from '../../core/errors/index.ts'

/** Ends a call before its answer has ended: with its key, when its time is up, or when money is lacking. */
export class EarlyEnd {
  readonly #controller = new AbortController()
  readonly #total: NodeJS.Timeout

  /** @param totalMs how long the call may take. */
  constructor(call: Call, totalMs: number) {
    this.#total = setTimeout(() => this.end(tooLong()), totalMs).unref()
    call.keyWatch?.follow(call, this.end)
  }

  /** Aborted when the call must end. */
  get signal(): AbortSignal {
    return this.#controller.signal
  }

  /** Why the call must end; undefined as long as it may go on. */
  get error(): GatewayError | undefined {
    return this.signal.aborted ? (this.signal.reason as GatewayError) : undefined
  }

  readonly end = (error: GatewayError): void => {
    this.#controller.abort(error)
  }

  /** Stops the clock. */
  close(): void {
    clearTimeout(this.#total)
  }
}

function tooLong(): GatewayError {
  return new GatewayError('upstream_timeout', { message: 'The call took longer than this path allows.' })
}
