import type { RequestHandler } from 'express'
import type { LeasePool } from 'express-model-gateway'
import { singleFlight } from '../single-flight.ts'

const CHECK_TIMEOUT_MS = 1000
/** Scrapes of all workers are answered within a second. */
const METRICS_WAIT_MS = 500

/** Rejects while something that requests need is not available. */
export type ReadinessCheck = () => Promise<void>

export interface ReadinessOptions {
  /** For how long an answer is given again without new checks, in milliseconds. Defaults to 250. */
  readonly freshMs?: number
}

/** Decides whether this process is ready for requests: not while it drains, and not while a check fails. */
export class Readiness {
  readonly #checks: { readonly reason: string; readonly check: ReadinessCheck }[]
  /** Shared: nobody needs a key to ask, and stores are not there to be pinged. */
  readonly #failure: () => Promise<string | undefined>
  #draining = false

  /** @param ping rejects while a store cannot be reached. */
  constructor(ping: ReadinessCheck, { freshMs = 250 }: ReadinessOptions = {}) {
    this.#checks = [{ reason: 'store', check: ping }]
    this.#failure = singleFlight(
      () => this.#check(),
      () => freshMs,
    )
  }

  /** Returns whether requests are to come, for metrics: not if the checks take longer than half a second. */
  async ready(): Promise<boolean> {
    if (this.#draining) return false
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<string>((resolve) => {
      timer = setTimeout(resolve, METRICS_WAIT_MS, 'late')
    })
    const failure = await Promise.race([this.#failure(), late])
    clearTimeout(timer)
    return failure === undefined
  }

  drain(): void {
    this.#draining = true
  }

  /** Adds a check, and the reason to answer while it fails. */
  addCheck(reason: string, check: ReadinessCheck): void {
    this.#checks.push({ reason, check })
  }

  /** Returns a handler that answers 200, or 503 with the reason. */
  handler(): RequestHandler {
    return async (_req, res) => {
      const reason = this.#draining ? 'draining' : await this.#failure()
      res.status(reason ? 503 : 200).json(reason ? { status: 'unavailable', reason } : { status: 'ready' })
    }
  }

  /** Runs all checks at once and returns the reason of the first that fails or takes too long. */
  async #check(): Promise<string | undefined> {
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<'late'>((resolve) => {
      timer = setTimeout(resolve, CHECK_TIMEOUT_MS, 'late')
    })
    const results = this.#checks.map(({ reason, check }) =>
      Promise.race([check(), late]).then(
        (answer) => (answer === 'late' ? reason : undefined),
        () => reason,
      ),
    )
    const failures = await Promise.all(results)
    clearTimeout(timer)
    return failures.find((failure) => failure !== undefined)
  }
}

/**
 * Returns a check that the ledger can write charges. If the only charges that wait are ones which may be invalid themselves
 * (`onTrial`), it checks that the database accepts a write: without requests, the process could never find out whether
 * other charges are written.
 *
 * @param write rejects while the database accepts no writes.
 */
export function ledgerServes(
  pool: Pick<LeasePool, 'away' | 'onTrial'>,
  write: () => Promise<void>,
): ReadinessCheck {
  return async () => {
    if (!pool.away) return
    if (!pool.onTrial) throw new Error('charges wait for the ledger')
    await write()
  }
}
