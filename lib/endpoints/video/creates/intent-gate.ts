import { StoreAway } from '../../../core/store-guard/index.ts'
import { timeLimit } from '../../../core/timing/index.ts'

/** Operations of an account at a time. */
const AT_ONCE = 2
/** Operations at a time of all accounts that are locked. */
const PROBES = 2
/** How long an operation waits for its turn, in milliseconds. */
const MAX_WAIT_MS = 900
/** How long an account counts as locked after a failure, in milliseconds. */
const LOCKED_MS = 1000

interface Account {
  running: number
  failedAt: number
  readonly waiting: Set<(turn: boolean) => void>
}

/**
 * Limits how many operations of an account run at a time, and further once one has failed: each may wait for locked rows,
 * on a connection that others need.
 */
export class IntentGate {
  readonly #accounts = new Map<string, Account>()
  #probes = 0

  /** @throws {StoreAway} (as a rejection) if the operation was not started; else the error of the operation. */
  async run<T>(id: string, operate: () => Promise<T>): Promise<T> {
    const account = this.#accounts.get(id) ?? { running: 0, failedAt: -LOCKED_MS, waiting: new Set() }
    this.#accounts.set(id, account)
    const isProbe = performance.now() - account.failedAt < LOCKED_MS
    const isFree = isProbe ? account.running === 0 && this.#probes < PROBES : account.running < AT_ONCE
    if (isFree) account.running++
    else if (isProbe || !(await turnOf(account)))
      throw new NotStarted('the account has too many creates under way')
    if (isProbe) this.#probes++
    try {
      const result = await operate()
      account.failedAt = -LOCKED_MS
      return result
    } catch (error) {
      account.failedAt = performance.now()
      for (const answer of account.waiting) answer(false)
      throw error
    } finally {
      if (isProbe) this.#probes--
      const [next] = account.waiting
      // The place goes to the waiting operation: one that comes now cannot take it first.
      if (next) next(true)
      else if (--account.running === 0) this.#forgetLater(id, account)
    }
  }

  /** A failure is kept for a while. */
  #forgetLater(id: string, account: Account): void {
    const forget = (): void => {
      if (account.running === 0 && account.waiting.size === 0) this.#accounts.delete(id)
    }
    if (account.failedAt < 0) forget()
    else setTimeout(forget, LOCKED_MS).unref()
  }
}

/** Waits for a turn. Resolves to false if there is none in time, or an operation of the account has failed. */
function turnOf({ waiting }: Account): Promise<boolean> {
  return new Promise((resolve) => {
    const answer = (turn: boolean): void => {
      cancel()
      waiting.delete(answer)
      resolve(turn)
    }
    const cancel = timeLimit(MAX_WAIT_MS, () => answer(false))
    waiting.add(answer)
  })
}

/** Thrown if the operation was not started. */
export class NotStarted extends StoreAway {}
