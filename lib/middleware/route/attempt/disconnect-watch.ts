import type { Call, DisconnectTrace } from '../../../core/call/index.ts'
import type { CallerStream } from '../relay/caller-stream.ts'
import type { Attempt, AttemptEnd } from './attempt.ts'

/** What happens to a running attempt when its caller leaves. */
export interface DisconnectPolicy {
  readonly onDisconnect: 'abort' | 'drain'
  readonly drainMs: number
}

/** Acts when the caller leaves during an attempt: ends it at once, or reads on for a while without the caller. */
export class DisconnectWatch {
  readonly #policy: DisconnectPolicy
  readonly #attempt: Attempt
  readonly #stream: CallerStream
  readonly #remove: () => void
  #left = false
  #timer: NodeJS.Timeout | undefined
  trace: DisconnectTrace | undefined

  constructor(call: Call, attempt: Attempt, stream: CallerStream, policy: DisconnectPolicy) {
    this.#policy = policy
    this.#attempt = attempt
    this.#stream = stream
    this.#remove = call.onLeave(() => this.#leave())
  }

  /** The attempt is over. */
  stop(end: AttemptEnd): void {
    this.#remove()
    clearTimeout(this.#timer)
    if (!this.#left) return
    const { onDisconnect: policy } = this.#policy
    if (end.kind === 'failed') this.trace = { policy, ended: 'upstream_failed' }
    else if (end.kind !== 'abandoned') this.trace = { policy, ended: 'drained' }
    else this.trace = { policy, ended: policy === 'drain' ? 'drain_timeout' : 'aborted' }
  }

  #leave(): void {
    this.#left = true
    this.#stream.discard()
    if (this.#policy.onDisconnect === 'abort') this.#attempt.abandon()
    else this.#timer = setTimeout(() => this.#attempt.abandon(), this.#policy.drainMs)
  }
}
