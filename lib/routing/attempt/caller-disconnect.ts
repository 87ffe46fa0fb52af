import type { DisconnectTrace } from '../../core/call/index.ts'
import type { AttemptEnd } from './failure.ts'

/** The rule for a running attempt whose caller leaves. */
export interface DisconnectPolicy {
  readonly onDisconnect: 'abort' | 'drain'
  readonly drainMs: number
}

/**
 * A caller's disconnect during an attempt. It aborts the attempt at once, or lets it continue for a while: with the policy
 * `abort`, too, if only the end of the answer shows what it has used.
 */
export class CallerDisconnect {
  readonly #policy: DisconnectPolicy['onDisconnect']
  readonly #drains: boolean
  readonly #timer: NodeJS.Timeout | undefined

  /**
   * @param running the attempt. It may end at once.
   * @param worksUnseen whether the upstream may have produced what did not come.
   */
  constructor(
    { onDisconnect, drainMs }: DisconnectPolicy,
    running: { abandon(): void },
    worksUnseen = false,
  ) {
    this.#policy = onDisconnect
    this.#drains = onDisconnect === 'drain' || worksUnseen
    if (this.#drains) this.#timer = setTimeout(() => running.abandon(), drainMs)
    else running.abandon()
  }

  /** Returns how the attempt ended. Call it once the attempt is over. */
  traceOf(end: AttemptEnd): DisconnectTrace {
    clearTimeout(this.#timer)
    const policy = this.#policy
    if (end.kind === 'failed') return { policy, ended: 'upstream_failed' }
    if (end.kind === 'served') return { policy, ended: 'drained' }
    return { policy, ended: this.#drains ? 'drain_timeout' : 'aborted' }
  }
}
