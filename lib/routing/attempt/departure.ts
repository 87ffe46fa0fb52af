import type { DisconnectTrace } from '../../core/call/index.ts'
import type { ExchangeEnd } from './exchange.ts'

/** What happens to a running attempt when its caller leaves. */
export interface DisconnectPolicy {
  readonly onDisconnect: 'abort' | 'drain'
  readonly drainMs: number
}

/** A caller's disconnect during an attempt. It aborts the attempt at once, or lets it continue for a while. */
export class Departure {
  readonly #policy: DisconnectPolicy['onDisconnect']
  readonly #timer: NodeJS.Timeout | undefined

  constructor(running: { abandon(): void }, { onDisconnect, drainMs }: DisconnectPolicy) {
    this.#policy = onDisconnect
    if (onDisconnect === 'abort') running.abandon()
    else this.#timer = setTimeout(() => running.abandon(), drainMs)
  }

  /** Returns how the attempt ended. Call it once the attempt is over. */
  traceOf(end: ExchangeEnd): DisconnectTrace {
    clearTimeout(this.#timer)
    const policy = this.#policy
    if (end.kind === 'failed') return { policy, ended: 'upstream_failed' }
    if (end.kind === 'served') return { policy, ended: 'drained' }
    return { policy, ended: policy === 'drain' ? 'drain_timeout' : 'aborted' }
  }
}
