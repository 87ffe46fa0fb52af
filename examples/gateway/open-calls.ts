import type { Call } from 'express-model-gateway'

/** Counts open calls, so that a shutdown can wait for those that outlive their connection. */
export class OpenCalls {
  #open = 0
  #whenNone: (() => void) | undefined
  readonly #onEnd: (call: Call) => void

  /** @param onEnd runs at the end of each call, behind all that it gives back. */
  constructor(onEnd: (call: Call) => void) {
    this.#onEnd = (call) => {
      this.#open--
      try {
        onEnd(call)
      } finally {
        if (this.#open === 0) this.#whenNone?.()
      }
    }
  }

  readonly add = (call: Call): void => {
    this.#open++
    call.onEnd('open calls', this.#onEnd)
  }

  /** Resolves when all calls have ended, or after `withinMs`. */
  async ended(withinMs: number): Promise<void> {
    if (this.#open === 0) return
    let timer: NodeJS.Timeout | undefined
    await new Promise<void>((resolve) => {
      this.#whenNone = resolve
      timer = setTimeout(resolve, withinMs)
    })
    clearTimeout(timer)
  }
}
