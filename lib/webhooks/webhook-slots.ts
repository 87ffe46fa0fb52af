/** Deliveries under way to one webhook, and to all. */
const MAX_OF_ONE = 4
const MAX_OF_ALL = 64

interface Load {
  running: number
  failing: boolean
}

/**
 * Shares out the deliveries that a process has under way. A webhook whose last delivery failed has one at a time. Every
 * webhook may have one, however many others hang: there are at most 50.
 */
export class WebhookSlots {
  readonly #loads = new Map<string, Load>()
  #running = 0

  freeFor(webhook: string): number {
    const { running, failing } = this.#loads.get(webhook) ?? { running: 0, failing: false }
    if (running === 0) return failing ? 1 : Math.max(1, Math.min(MAX_OF_ONE, MAX_OF_ALL - this.#running))
    return failing ? 0 : Math.max(0, Math.min(MAX_OF_ONE - running, MAX_OF_ALL - this.#running))
  }

  /** Takes a slot; returns the function that gives it back, and is told whether the delivery succeeded. */
  take(webhook: string): (delivered: boolean) => void {
    const load = this.#loads.get(webhook) ?? { running: 0, failing: false }
    this.#loads.set(webhook, load)
    load.running++
    this.#running++
    return (delivered) => {
      load.running--
      this.#running--
      load.failing = !delivered
      if (load.running === 0 && delivered) this.#loads.delete(webhook)
    }
  }
}
