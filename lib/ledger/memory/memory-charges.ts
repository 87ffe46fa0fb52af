import type { Audit } from '../audit.ts'
import type { MemoryWallet } from './memory-wallets.ts'

/** What stands under a request id: a charge, undone or not, or a void that came before any. */
export interface MemoryCharge {
  /** Those charged; undefined for a void that came first. */
  readonly account: MemoryWallet | undefined
  readonly key: MemoryWallet | undefined
  readonly amount: bigint
  voided: boolean
}

/**
 * Charges and voids by their request id. When there are too many, the oldest are folded into a sum of their wallets.
 */
export class MemoryCharges {
  readonly #most: number
  readonly #byRequest = new Map<string, MemoryCharge>()
  /** One for good: a new one would each time walk over all that was deleted before. */
  readonly #oldest = this.#byRequest.entries()
  #folded = 0

  constructor(most: number) {
    this.#most = most
  }

  find(requestId: string): MemoryCharge | undefined {
    return this.#byRequest.get(requestId)
  }

  add(requestId: string, charge: MemoryCharge): void {
    this.#byRequest.set(requestId, charge)
    if (this.#byRequest.size > this.#most) this.#foldOldest()
  }

  addEntriesTo(audit: Audit): void {
    audit.countCharges(this.#folded)
    for (const { account, key, amount, voided } of this.#byRequest.values()) {
      if (!account) continue
      audit.countCharges(1)
      for (const wallet of key ? [account, key] : [account]) {
        audit.charges(wallet.id, amount)
        if (voided) audit.voids(wallet.id, amount)
      }
    }
  }

  #foldOldest(): void {
    const oldest = this.#oldest.next().value
    if (!oldest) return
    const [requestId, { account, key, amount, voided }] = oldest
    this.#byRequest.delete(requestId)
    if (!account) return
    this.#folded += 1
    if (voided) return
    account.folded += amount
    if (key) key.folded += amount
  }
}
