import type { ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'

/** What a call answers on: a response, or the socket of an upgraded connection. */
export type CallTarget = ServerResponse | Duplex

/** Gives back what a call took. */
export type GiveBack<Self> = (call: Self) => void | Promise<void>

/** A give-back that waits for the end, and the one that was registered before it. */
interface Registered<Self> {
  readonly name: string
  readonly run: GiveBack<Self>
  readonly before: Registered<Self> | undefined
}

/**
 * The one place that ends a call, exactly once, however its response ends: finished, client gone before or after the
 * headers, exception, aborted upstream. A response or socket emits `close` in each of these cases; the call has ended
 * when that came and nobody holds it open any more.
 */
export abstract class Lifecycle {
  readonly #target: CallTarget
  #last: Registered<this> | undefined
  #leaveListeners: (() => void)[] | undefined
  #holds = 0
  #closed = false
  #ended = false

  /** @param target the response or socket. */
  constructor(target: CallTarget) {
    this.#target = target
    const close = (): void => {
      if (this.#closed) return
      this.#closed = true
      if (this.#leaveListeners && this.left) this.#tellLeft(this.#leaveListeners)
      this.#endIfDone()
    }
    if (target.destroyed) queueMicrotask(close)
    else target.on('close', close)
    // An upgraded socket has no error listener of Node's any more: a reset would end the process. `close` follows it.
    if (!('setHeader' in target)) target.on('error', () => {})
  }

  /**
   * Runs first at the end, so that the outcome is known to what follows.
   *
   * @param whole whether the whole answer was handed over.
   */
  protected abstract conclude(whole: boolean): void

  /** Is told what a give-back threw. */
  protected abstract fault(error: unknown, name: string): void

  /** Whether the call is over and everything it took was given back. */
  get ended(): boolean {
    return this.#ended
  }

  /** Whether the caller has gone, or has been cut off, before the whole answer was handed over. */
  get left(): boolean {
    return this.#closed && !this.#target.writableFinished
  }

  /**
   * Registers what is to be given back when the call ends, however it ends; last taken, first given back. What throws
   * is logged and hinders no other. On an ended call it runs at once: an acquisition that outlived its caller leaks
   * nothing.
   *
   * @example
   * const slot = await slots.acquire(account)
   * call.onEnd('slot', () => slot.release())
   */
  onEnd(name: string, run: GiveBack<this>): void {
    if (this.#ended) this.#run(name, run)
    else this.#last = { name, run, before: this.#last }
  }

  /**
   * Calls `listener` once if the caller leaves before the whole answer was handed over; at once if it already has.
   *
   * @returns a function that removes the listener.
   */
  onLeave(listener: () => void): () => void {
    if (this.left) {
      listener()
      return () => {}
    }
    if (this.#leaveListeners) this.#leaveListeners.push(listener)
    else this.#leaveListeners = [listener]
    return () => {
      const listeners = this.#leaveListeners
      const place = listeners ? listeners.indexOf(listener) : -1
      if (place >= 0) listeners?.splice(place, 1)
    }
  }

  /**
   * Keeps the call from ending while work for it goes on after its response closed, as while an upstream is drained.
   *
   * @returns a function that lets go; calling it again does nothing.
   */
  hold(): () => void {
    this.#holds++
    let held = true
    return () => {
      if (!held) return
      held = false
      this.#holds--
      this.#endIfDone()
    }
  }

  #tellLeft(listeners: readonly (() => void)[]): void {
    this.#leaveListeners = undefined
    for (const listener of listeners) this.#run('onLeave', listener)
  }

  #endIfDone(): void {
    if (!this.#closed || this.#holds > 0 || this.#ended) return
    this.#ended = true
    this.#leaveListeners = undefined
    this.conclude(this.#target.writableFinished)
    for (let next = this.#last; next; next = this.#last) {
      this.#last = next.before
      this.#run(next.name, next.run)
    }
  }

  /** One failing give-back never hinders the others. */
  #run(name: string, run: GiveBack<this>): void {
    try {
      const pending = run(this)
      if (pending) pending.catch((error: unknown) => this.fault(error, name))
    } catch (error) {
      this.fault(error, name)
    }
  }
}
