import type { RequestHandler } from 'express'

const PATIENCE_MS = 1000

/** Whether this process should be sent requests: not while it drains, not while a store it needs is away. */
export class Readiness {
  readonly #ping: () => Promise<void>
  #draining = false

  /** @param ping rejects while a store cannot be reached. */
  constructor(ping: () => Promise<void>) {
    this.#ping = ping
  }

  get draining(): boolean {
    return this.#draining
  }

  drain(): void {
    this.#draining = true
  }

  /** Answers 200, or 503 with the reason. */
  handler(): RequestHandler {
    return async (_req, res) => {
      const reason = this.#draining ? 'draining' : await this.#storeFault()
      res.status(reason ? 503 : 200).json(reason ? { status: 'unavailable', reason } : { status: 'ready' })
    }
  }

  async #storeFault(): Promise<string | undefined> {
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<string>((resolve) => {
      timer = setTimeout(() => resolve('store'), PATIENCE_MS)
    })
    const asked = this.#ping().then(
      () => undefined,
      () => 'store',
    )
    const fault = await Promise.race([asked, late])
    clearTimeout(timer)
    return fault
  }
}
