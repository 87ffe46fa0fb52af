import type { CallLogEntry, Logger } from '../../core/call/index.ts'
import type { HeldDraw, WalletLease } from '../leases/wallet-lease.ts'
import type { Settlement, SettlementResult } from '../ledger.ts'
import type { SettlementQueue } from './settlement-queue.ts'
import type { Settling } from './waiting-settlements.ts'

/** `unconfirmed`: it was not known in time whether the charge stands. It stays queued until it is. */
export type SettleOutcome = 'confirmed' | 'fenced' | 'unconfirmed'

/** What became of a charge. `fenced`: the call's claim belongs to a later call, and nothing was charged. */
export type ChargeOutcome = 'confirmed' | 'fenced' | 'voided'

/** What a call comes to. */
export interface Bill {
  /** What is charged once. */
  readonly requestId: string
  /** The true cost, in nano-units. */
  readonly amount: bigint
  /** Milliseconds since the epoch. */
  readonly at: number
  /** How the amount came about, as JSON. Asked for when the ledger is. */
  readonly basis: () => string
  /** Completed with the charge, by a ledger that settles records. */
  readonly claim: Settlement['claim']
  /** The log entry to write with it. Asked for when the ledger is. */
  readonly entry: (() => CallLogEntry) | null
  /** Told once what became of it, also long after the call; again only where a charge that stood is revoked. */
  readonly onResolved?: (outcome: ChargeOutcome) => void
}

/** What a charge needs of its pool. */
export interface ChargeSurroundings {
  readonly queue: SettlementQueue
  readonly logger: Logger
}

/** Whose charge it is, and which leases pay. */
export interface ChargeParts {
  readonly accountId: string
  readonly keyId: string | null
  readonly wallets: readonly WalletLease[]
  readonly draws: readonly HeldDraw[]
}

/** One call's charge on its way into the ledger, and out again where it is revoked. */
export class Charge implements Settling {
  readonly #bill: Bill
  readonly #parts: ChargeParts
  readonly #around: ChargeSurroundings
  /** `handed`: the ledger may have it. */
  #state: 'waiting' | 'handed' | 'stands' | 'over' = 'waiting'
  #kind: Settlement['kind'] = 'charge'
  /** The log entry of a call that is not charged after all. */
  #revoked: { readonly entry: (() => CallLogEntry) | null } | undefined
  #isAside = false
  #built: Settlement | undefined

  constructor(bill: Bill, parts: ChargeParts, around: ChargeSurroundings) {
    this.#bill = bill
    this.#parts = parts
    this.#around = around
    for (const wallet of parts.wallets) wallet.unhanded += bill.amount
  }

  /** Queues it. */
  settle(): SettleOutcome | Promise<SettleOutcome> {
    const confirmation = this.#around.queue.put(this)
    if (!(confirmation instanceof Promise)) return this.#outcome(confirmation)
    return confirmation.then((result) => this.#outcome(result))
  }

  settlement(): Settlement {
    if (this.#state === 'waiting') this.#hand()
    // Handed again, its log entry tells how the call has ended since; all else is the same each time.
    this.#built = this.#built ? this.#retold(this.#built) : this.#build()
    return this.#built
  }

  settled(result: SettlementResult, repeated: boolean): void {
    if (this.#kind === 'void') {
      this.#end('voided')
      return
    }
    // Where it stood before it was ever handed, another charge with this id drew.
    this.#tellWallets(result === 'fenced' || (result === 'known' && !repeated))
    if (result === 'fenced') {
      this.#end('fenced')
      return
    }
    this.#state = 'stands'
    if (this.#revoked) this.#undo()
    else this.#tell('confirmed')
  }

  setAside(): boolean {
    this.#isAside = true
    return this.#revoked !== undefined && this.#kind === 'charge' && this.#voidUnseen()
  }

  /**
   * The charge must not stand.
   *
   * @returns `dropped` when there is nothing to write for that.
   */
  revoke(entry: (() => CallLogEntry) | null): 'queued' | 'dropped' {
    if (this.#revoked) return 'queued'
    if (this.#state === 'over') return 'dropped'
    this.#revoked = { entry }
    if (this.#state === 'waiting') return this.#revokeUnhanded(entry)
    if (this.#state === 'stands') this.#undo()
    else if (this.#isAside) this.#voidUnseen()
    return 'queued'
  }

  /** The ledger cannot know it: the money is there again at once. A record that hangs on it is freed all the same. */
  #revokeUnhanded(entry: (() => CallLogEntry) | null): 'queued' | 'dropped' {
    const { queue } = this.#around
    this.#hand()
    this.#tellWallets(true)
    this.#kind = 'void'
    if (queue.settlesRecords && (entry || this.#bill.claim)) return 'queued'
    queue.drop(this)
    this.#end('voided')
    return 'dropped'
  }

  /** It stands, and is undone by a void of its own. */
  #undo(): void {
    this.#kind = 'void'
    this.#built = undefined
    void this.#around.queue.put(this)
  }

  /**
   * The ledger does not take it, and may have it all the same: it becomes a void. What the leases hold nobody knows
   * then, so they are given up.
   */
  #voidUnseen(): true {
    this.#tellWallets(false)
    for (const { from, held } of this.#parts.draws) from.drop(held)
    this.#kind = 'void'
    this.#built = undefined
    return true
  }

  #hand(): void {
    this.#state = 'handed'
    for (const wallet of this.#parts.wallets) wallet.unhanded -= this.#bill.amount
  }

  #tellWallets(returned: boolean): void {
    for (const draw of this.#parts.draws) draw.from.drawn(draw, returned)
  }

  #build(): Settlement {
    const { accountId: account, keyId: key, draws } = this.#parts
    const { requestId, amount, at, basis, claim, entry } = this.#bill
    const kind = this.#kind
    const common = { kind, requestId, account, key, amount, at, claim }
    if (kind === 'void') {
      return { ...common, draws: [], basis: null, entry: this.#ask(this.#revoked?.entry ?? null) }
    }
    const drawn = draws.map(({ lease, wallet, amount }) => ({ lease, wallet, amount }))
    return { ...common, draws: drawn, basis: this.#ask(basis), entry: this.#ask(entry) }
  }

  #retold(built: Settlement): Settlement {
    if (!built.entry) return built
    const { entry } = (this.#kind === 'void' && this.#revoked) || this.#bill
    return { ...built, entry: this.#ask(entry) }
  }

  /** What cannot be told of a charge does not keep it from being charged. */
  #ask<T>(question: (() => T) | null): T | null {
    try {
      return question?.() ?? null
    } catch (error) {
      const { requestId } = this.#bill
      this.#around.logger.error(
        { err: error, requestId },
        'a charge is written without all that belongs to it',
      )
      return null
    }
  }

  #outcome(result: SettlementResult | 'late'): SettleOutcome {
    if (result === 'late' || this.#revoked) return 'unconfirmed'
    return result === 'fenced' ? 'fenced' : 'confirmed'
  }

  #end(outcome: ChargeOutcome): void {
    this.#state = 'over'
    this.#tell(outcome)
  }

  #tell(outcome: ChargeOutcome): void {
    try {
      this.#bill.onResolved?.(outcome)
    } catch (error) {
      const { requestId } = this.#bill
      this.#around.logger.error({ err: error, requestId }, 'a listener to what became of a charge failed')
    }
  }
}
