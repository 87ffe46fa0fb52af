import { FairQueue } from '../fair-queue/index.ts'

interface Known<Value> {
  readonly value: Value
  readonly until: number
}

/** Remembers values by account and name for a while, in this process. Beyond a number, the account with most gives way. */
export class RecentValues<Value> {
  readonly #keptMs: number
  readonly #known = new Map<string, Known<Value>>()
  /** The keys in the order in which they came. */
  readonly #order: FairQueue<string>

  constructor(keptMs: number, most = 10_000) {
    this.#keptMs = keptMs
    this.#order = new FairQueue({ maxItems: most })
  }

  find(account: string, name: string): Value | undefined {
    const found = this.#known.get(keyOf(account, name))
    return found && found.until > performance.now() ? found.value : undefined
  }

  add(account: string, name: string, value: Value): void {
    this.delete(account, name)
    const key = keyOf(account, name)
    this.#known.set(key, { value, until: performance.now() + this.#keptMs })
    for (const dropped of this.#order.add(account, key)) this.#known.delete(dropped)
  }

  delete(account: string, name: string): void {
    const key = keyOf(account, name)
    this.#order.delete(account, key)
    this.#known.delete(key)
  }
}

function keyOf(account: string, name: string): string {
  return JSON.stringify([account, name])
}
