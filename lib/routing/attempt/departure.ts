import type { DisconnectTrace } from '../../core/call/index.ts'
import type { ExchangeEnd } from './exchange.ts'

/** What happens to a running attempt when its caller leaves. */
export interface DisconnectPolicy {
  readonly onDisconnect: 'abort' | 'drain'
  readonly drainMs: number
}

/** A caller has left during an attempt: that ends at once, or is read on for a while without the caller. */
export class Departure {
  readonly #policy: DisconnectPolicy['onDisconnect']
  readonly #timer: NodeJS.Timeout | undefined

  constructor(running: { abandon(): void }, { onDisconnect, drainMs }: DisconnectPolicy) {
    this.#policy = onDisconnect
    if (onDisconnect === 'abort') running.abandon()
    else this.#timer = setTimeout(() => running.abandon(), drainMs)
  }

  /** Tells how the attempt ended, once it is over. */
  traceOf(end: ExchangeEnd): DisconnectTrace {
    clearTimeout(this.#timer)
    const policy = this.#policy
    if (end.kind === 'failed') return { policy, ended: 'upstream_failed' }
    if (end.kind === 'served') return { policy, ended: 'drained' }
    return { policy, ended: policy === 'drain' ? 'drain_timeout' : 'aborted' }
  }
}
