import type { Model } from '../../core/catalog/index.ts'

const WINDOW_SECONDS = 10
/** Retries a second that are free whatever the load. */
const FREE_PER_SECOND = 10
/** Beyond those, retries are at most this share of the calls of the last ten seconds. */
const SHARE = 0.2

/** Keeps retries of one model from multiplying an outage: every line down must not mean every request sent thrice. */
export class RetryBudget {
  readonly #calls = new Array<number>(WINDOW_SECONDS).fill(0)
  readonly #retries = new Array<number>(WINDOW_SECONDS).fill(0)
  #second = 0

  noteCall(): void {
    const slot = this.#slot()
    this.#calls[slot] = (this.#calls[slot] as number) + 1
  }

  /** Takes one retry out of the budget; false when there is none. */
  takeRetry(): boolean {
    const slot = this.#slot()
    const thisSecond = this.#retries[slot] as number
    if (thisSecond >= FREE_PER_SECOND && sum(this.#retries) + 1 > SHARE * sum(this.#calls)) return false
    this.#retries[slot] = thisSecond + 1
    return true
  }

  #slot(): number {
    const second = Math.floor(performance.now() / 1000)
    const passed = Math.min(WINDOW_SECONDS, second - this.#second)
    for (let i = 0; i < passed; i++) {
      this.#calls[(second - i) % WINDOW_SECONDS] = 0
      this.#retries[(second - i) % WINDOW_SECONDS] = 0
    }
    this.#second = second
    return second % WINDOW_SECONDS
  }
}

/** A budget for each model. */
export class RetryBudgets {
  readonly #byModel = new Map<string, RetryBudget>()

  of({ id }: Model): RetryBudget {
    const known = this.#byModel.get(id)
    if (known) return known
    const budget = new RetryBudget()
    this.#byModel.set(id, budget)
    return budget
  }
}

function sum(counts: readonly number[]): number {
  let total = 0
  for (const count of counts) total += count
  return total
}
