import type { DisconnectTrace } from '../../core/call/index.ts'
import type { ExchangeEnd } from './failure.ts'

/** What happens to a running attempt when its caller leaves. */
export interface DisconnectPolicy {
  readonly onDisconnect: 'abort' | 'drain'
  readonly drainMs: number
}

/**
 * A caller's disconnect during an attempt. It aborts the attempt at once, or lets it continue for a while: to abort it, too,
 * if only its end tells what it has used.
 */
export class Departure {
  readonly #policy: DisconnectPolicy['onDisconnect']
  readonly #drainMs: number
  readonly #drains: boolean
  #timer: NodeJS.Timeout | undefined

  /** @param worksUnseen whether the upstream may have produced what did not come. */
  constructor({ onDisconnect, drainMs }: DisconnectPolicy, worksUnseen = false) {
    this.#policy = onDisconnect
    this.#drainMs = drainMs
    this.#drains = onDisconnect === 'drain' || worksUnseen
  }

  /** Aborts the attempt, or lets it continue. An attempt that is aborted may end at once. */
  from(running: { abandon(): void }): void {
    if (this.#drains) this.#timer = setTimeout(() => running.abandon(), this.#drainMs)
    else running.abandon()
  }

  /** Returns how the attempt ended. Call it once the attempt is over. */
  traceOf(end: ExchangeEnd): DisconnectTrace {
    clearTimeout(this.#timer)
    const policy = this.#policy
    if (end.kind === 'failed') return { policy, ended: 'upstream_failed' }
    if (end.kind === 'served') return { policy, ended: 'drained' }
    return { policy, ended: this.#drains ? 'drain_timeout' : 'aborted' }
  }
}
