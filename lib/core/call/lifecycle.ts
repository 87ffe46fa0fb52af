import type { ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'

/** The object that a call answers on: a response, or the socket of an upgraded connection. */
export type CallTarget = ServerResponse | Duplex

/** Releases what a call has acquired. */
export type GiveBack<Self> = (call: Self) => void | Promise<void>

/** A registered function that waits for the end, and the one that was registered before it. */
interface Registered<Self> {
  readonly name: string
  readonly run: GiveBack<Self>
  readonly before: Registered<Self> | undefined
}

/**
 * Ends a call exactly once, however its response ends: finished, caller gone before or after the headers, exception,
 * aborted upstream. A response or socket emits `close` in each of these cases. The call ends when that has happened and
 * nothing holds it open.
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
    // Node removes its error listener from an upgraded socket: a reset would end the process. `close` follows the
    // error.
    if (!('setHeader' in target)) target.on('error', () => {})
  }

  /**
   * Runs first at the end, so that the functions after it know the outcome.
   *
   * @param whole whether the whole answer was handed over.
   */
  protected abstract conclude(whole: boolean): void

  /** Receives the error of a function that failed at the end. */
  protected abstract fault(error: unknown, name: string): void

  /** Whether the call has ended and everything it acquired was released. */
  get ended(): boolean {
    return this.#ended
  }

  /** Whether the caller has left or was disconnected before the whole answer was handed over. */
  get left(): boolean {
    return this.#closed && !this.#target.writableFinished
  }

  /**
   * Registers a function that runs when the call ends, however it ends; the last registered runs first. An error in one
   * is logged and does not stop the others. On a call that has ended, the function runs at once, so that nothing leaks.
   *
   * @example
   * const slot = await slots.acquire(account)
   * call.onEnd('slot', () => slot.release())
   */
  onEnd(name: string, run: GiveBack<this>): void {
    if (this.#ended) this.#run(name, run)
    else this.#last = { name, run, before: this.#last }
  }

  /** Calls `listener` once if the caller leaves before the whole answer was handed over; at once if the caller has left. */
  onLeave(listener: () => void): void {
    if (this.left) listener()
    else if (this.#leaveListeners) this.#leaveListeners.push(listener)
    else this.#leaveListeners = [listener]
  }

  /** Removes a listener of {@link onLeave}. */
  offLeave(listener: () => void): void {
    this.#leaveListeners = this.#leaveListeners?.filter((each) => each !== listener)
  }

  /**
   * Keeps the call open while work for it continues after its response has closed, such as reading the rest of an
   * upstream's answer.
   *
   * @returns a function that lets the call end; further calls of it do nothing.
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

  /** Runs one function. Its failure does not stop the others. */
  #run(name: string, run: GiveBack<this>): void {
    try {
      const pending = run(this)
      if (pending) pending.catch((error: unknown) => this.fault(error, name))
    } catch (error) {
      this.fault(error, name)
    }
  }
}
