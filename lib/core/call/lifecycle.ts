import type { ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'

/** What a call answers on: a response, or the socket of an upgraded connection. */
export type CallTarget = ServerResponse | Duplex

/** Something that a call took and gives back at its end. */
interface GiveBack {
  readonly name: string
  readonly run: () => void | Promise<void>
}

/** Receives what a give-back threw. */
export type EndFault = (error: unknown, name: string) => void

/**
 * The one place that ends a call, exactly once, however its response ends: finished, client gone before or after the
 * headers, exception, aborted upstream. A response or socket emits `close` in each of these cases; the call has ended
 * when that came and nobody holds it open any more.
 */
export class Lifecycle {
  #target: CallTarget
  #fault: EndFault
  #givebacks: GiveBack[] = []
  #leaveListeners: Set<() => void> | undefined
  #holds = 0
  #closed = false
  #ended = false
  #beforeEnd: () => void

  /**
   * @param target the response or socket.
   * @param beforeEnd runs first at the end, so that the outcome is known to what follows.
   * @param fault is told what a give-back threw.
   */
  constructor(target: CallTarget, beforeEnd: () => void, fault: EndFault) {
    this.#target = target
    this.#beforeEnd = beforeEnd
    this.#fault = fault
    if (target.destroyed) queueMicrotask(() => this.#close())
    else target.once('close', () => this.#close())
    // An upgraded socket has no error listener of Node's any more: a reset would end the process. `close` follows it.
    if (!('setHeader' in target)) target.on('error', () => {})
  }

  get ended(): boolean {
    return this.#ended
  }

  /** Whether the caller has gone, or has been cut off, before the whole answer was handed over. */
  get left(): boolean {
    return this.#closed && !this.#target.writableFinished
  }

  /**
   * Registers what is to be given back when the call ends. The last one taken is the first one given back. Registering
   * on a call that has ended runs it at once: an acquisition that outlived its caller leaks nothing.
   */
  onEnd(name: string, run: () => void | Promise<void>): void {
    if (this.#ended) this.#run({ name, run })
    else this.#givebacks.push({ name, run })
  }

  /**
   * Calls `listener` once when the caller leaves before the whole answer was handed over; at once if it already has.
   *
   * @returns a function that removes the listener.
   */
  onLeave(listener: () => void): () => void {
    if (this.left) {
      listener()
      return () => {}
    }
    this.#leaveListeners ??= new Set()
    this.#leaveListeners.add(listener)
    return () => this.#leaveListeners?.delete(listener)
  }

  /**
   * Keeps the call from ending although its response is closed, as while an upstream is drained.
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

  #close(): void {
    if (this.#closed) return
    this.#closed = true
    if (this.left && this.#leaveListeners) {
      const listeners = [...this.#leaveListeners]
      this.#leaveListeners.clear()
      for (const listener of listeners) this.#run({ name: 'onLeave', run: listener })
    }
    this.#endIfDone()
  }

  #endIfDone(): void {
    if (!this.#closed || this.#holds > 0 || this.#ended) return
    this.#ended = true
    this.#leaveListeners = undefined
    this.#run({ name: 'outcome', run: this.#beforeEnd })
    for (let next = this.#givebacks.pop(); next; next = this.#givebacks.pop()) this.#run(next)
  }

  /** One failing give-back never hinders the others. */
  #run(giveBack: GiveBack): void {
    try {
      const pending = giveBack.run()
      if (pending) pending.catch((error: unknown) => this.#fault(error, giveBack.name))
    } catch (error) {
      this.#fault(error, giveBack.name)
    }
  }
}
