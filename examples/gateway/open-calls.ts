import type { Call } from 'express-model-gateway'

/** Counts open calls, so that a shutdown can wait for those that outlive their connection. */
export class OpenCalls {
  #open = 0
  #whenNone: (() => void) | undefined
  readonly #ended = (): void => {
    this.#open--
    if (this.#open === 0) this.#whenNone?.()
  }

  add(call: Call): void {
    this.#open++
    call.onEnd('open calls', this.#ended)
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
