import type { RequestHandler } from 'express'

const PATIENCE_MS = 1000

/** Rejects while something that requests need is not to be had. */
export type Need = () => Promise<void>

/** Whether this process should be sent requests: not while it drains, not while something that it needs is away. */
export class Readiness {
  readonly #needs: { readonly reason: string; readonly need: Need }[]
  #draining = false

  /** @param ping rejects while a store cannot be reached. */
  constructor(ping: Need) {
    this.#needs = [{ reason: 'store', need: ping }]
  }

  get draining(): boolean {
    return this.#draining
  }

  drain(): void {
    this.#draining = true
  }

  /** Something more that is needed, and what is told while it is not to be had. */
  alsoNeeds(reason: string, need: Need): void {
    this.#needs.push({ reason, need })
  }

  /** Answers 200, or 503 with the reason. */
  handler(): RequestHandler {
    return async (_req, res) => {
      const reason = this.#draining ? 'draining' : await this.#fault()
      res.status(reason ? 503 : 200).json(reason ? { status: 'unavailable', reason } : { status: 'ready' })
    }
  }

  /** The first of what is not to be had; all are asked at once, and none is waited for for long. */
  async #fault(): Promise<string | undefined> {
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<'late'>((resolve) => {
      timer = setTimeout(resolve, PATIENCE_MS, 'late')
    })
    const asked = this.#needs.map(({ reason, need }) =>
      Promise.race([need(), late]).then(
        (answer) => (answer === 'late' ? reason : undefined),
        () => reason,
      ),
    )
    const faults = await Promise.all(asked)
    clearTimeout(timer)
    return faults.find((fault) => fault !== undefined)
  }
}
