import type { AuditedCharges, AuditedVoid } from '../audit.ts'
import type { ChargeRecord } from '../ledger.ts'
import type { Standing, StandingCharges } from '../settlement.ts'

interface KeptCharge extends Standing {
  voided: boolean
}

/** The sum of the older charges of one account and key. */
interface FoldedCharges extends AuditedCharges {
  amount: bigint
  count: number
}

/** Charges and voids by their request id. If there are too many, the oldest are merged into sums. */
export class MemoryCharges implements StandingCharges {
  readonly #most: number
  readonly #byRequest = new Map<string, KeptCharge>()
  /** One iterator for all deletions: a new one would skip all deleted entries each time. */
  readonly #oldest = this.#byRequest.entries()
  /** By account, then by key. */
  readonly #folded = new Map<string, Map<string | null, FoldedCharges>>()

  constructor(most: number) {
    this.#most = most
  }

  find(requestId: string): Standing | undefined {
    return this.#byRequest.get(requestId)
  }

  add({ requestId, account, key, amount }: Omit<ChargeRecord, 'at' | 'basis'>): void {
    this.#byRequest.set(requestId, { account, key, amount, voided: false })
    if (this.#byRequest.size > this.#most) this.#foldOldest()
  }

  /** Undoes a charge, or prevents one that arrives later. */
  void({ requestId }: Pick<ChargeRecord, 'requestId'>): void {
    const kept = this.#byRequest.get(requestId)
    if (kept) {
      kept.voided = true
      return
    }
    this.#byRequest.set(requestId, { account: null, key: null, amount: 0n, voided: true })
    if (this.#byRequest.size > this.#most) this.#foldOldest()
  }

  charges(): AuditedCharges[] {
    const charges: AuditedCharges[] = [...this.#folded.values()].flatMap((byKey) => [...byKey.values()])
    for (const { account, key, amount } of this.#byRequest.values()) {
      if (account !== null) charges.push({ account, key, amount, count: 1 })
    }
    return charges
  }

  voids(): AuditedVoid[] {
    const voids: AuditedVoid[] = []
    for (const [requestId, { account, key, amount, voided }] of this.#byRequest) {
      if (!voided || account === null) continue
      voids.push({ requestId, account, key, amount, charge: { account, key, amount } })
    }
    return voids
  }

  #foldOldest(): void {
    const oldest = this.#oldest.next().value
    if (!oldest) return
    const [requestId, { account, key, amount, voided }] = oldest
    this.#byRequest.delete(requestId)
    if (account === null) return
    const byKey = this.#folded.get(account) ?? new Map<string | null, FoldedCharges>()
    this.#folded.set(account, byKey)
    const sum = byKey.get(key) ?? { account, key, amount: 0n, count: 0 }
    byKey.set(key, sum)
    sum.count++
    if (!voided) sum.amount += amount
  }
}
