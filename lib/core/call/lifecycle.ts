import type { ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { LAST_BYTES } from './last-bytes.ts'
import type { CallEnding } from './parts.ts'

/** The object that a call answers on: a response, or the socket of an upgraded connection. */
export type CallTarget = ServerResponse | Duplex

/** Releases what a call has acquired. */
export type GiveBack<Self> = (call: Self) => void | Promise<void>

/** When a call was made durable. Times are milliseconds since the epoch. */
interface SettlingTrace {
  readonly startedAt: number
  /** null until it is done, and if it failed at once. */
  endedAt: number | null
}

/** Does durable work before the end of an answer. If it throws or rejects, the error is answered instead. */
type Settler = (ending: CallEnding) => Promise<void> | undefined

/** A registered function that waits for the end, and the one that was registered before it. */
interface Registered<Self> {
  readonly name: string
  readonly run: GiveBack<Self>
  readonly before: Registered<Self> | undefined
}

/**
 * What others register with a call: what settles it, what must be done before its last byte, what it gives back at its end.
 *
 * Ends a call exactly once, however its response ends: finished, caller gone before or after the headers, exception,
 * aborted upstream. A response or socket emits `close` in each of these cases. The call ends when that has happened and
 * nothing holds it open.
 */
export abstract class Lifecycle {
  /** When the call was made durable; null if nothing had to be. */
  settling: SettlingTrace | null = null
  readonly #target: CallTarget
  #last: Registered<this> | undefined
  #leaveListeners: (() => void)[] | undefined
  #holds = 0
  #settlers: Settler[] | undefined
  #proofs: (() => void)[] | undefined
  /** What runs before the last byte, and once it runs, what that byte waits for. */
  #lastByte: (() => Promise<void> | undefined)[] | Promise<unknown> | undefined
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

  /** Registers durable work that must be done before the last event of an answer is sent. */
  onSettle(run: Settler): void {
    if (this.#settlers) this.#settlers.push(run)
    else this.#settlers = [run]
  }

  /**
   * Runs the settlers, each once, in the order of registration. Returns undefined if none of them has to be awaited.
   *
   * @throws the error of a settler, also as a rejection; the answer must not be finished then.
   */
  settle(ending: CallEnding): Promise<void> | undefined {
    const settlers = this.#settlers
    if (!settlers) return undefined
    this.#settlers = undefined
    // The settlement and what has to happen before the last byte are waited for together.
    if (this.#lastByte && ending.unsent !== null && ending.unsent.length <= LAST_BYTES) void this.lastByte()
    this.settling = { startedAt: Date.now(), endedAt: null }
    for (let i = 0; i < settlers.length; i++) {
      const running = settlers[i]?.(ending)
      if (running) return settleOn(running, settlers.slice(i + 1), ending, this.settling)
    }
    this.settling.endedAt = Date.now()
    return undefined
  }

  /** Registers work that must be done before the caller can have read the last byte. It must not reject. */
  onLastByte(run: () => Promise<void> | undefined): void {
    if (Array.isArray(this.#lastByte)) this.#lastByte.push(run)
    else this.#lastByte = [run]
  }

  /** Does that work, once, before a last byte goes out. Returns undefined if there is nothing to wait for. */
  lastByte(): Promise<void> | undefined {
    if (!Array.isArray(this.#lastByte)) return this.#lastByte as Promise<void> | undefined
    const waiting = this.#lastByte.map((run) => run()).filter((each) => each !== undefined)
    this.#lastByte = waiting.length > 0 ? Promise.all(waiting) : undefined
    return this.#lastByte as Promise<void> | undefined
  }

  /** Registers a check that throws if the call must not go on, for example because its claim was lost. */
  onProve(check: () => void): void {
    if (this.#proofs) this.#proofs.push(check)
    else this.#proofs = [check]
  }

  /**
   * Runs the checks. Called before each attempt and before the last byte.
   *
   * @throws the error of a check; nothing more may be sent then.
   */
  prove(): void {
    if (this.#proofs) for (const check of this.#proofs) check()
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

/**
 * Waits for a settler, then runs the following ones one after another, and records the time when the last has ended.
 *
 * @throws the error of a settler, as a rejection.
 */
async function settleOn(
  running: Promise<void>,
  others: readonly Settler[],
  ending: CallEnding,
  trace: SettlingTrace,
): Promise<void> {
  try {
    await running
    for (const settler of others) await settler(ending)
  } finally {
    trace.endedAt = Date.now()
  }
}
