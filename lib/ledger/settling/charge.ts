import type { CallLogEntry, Logger } from '../../core/call/index.ts'
import { formatAmount } from '../../core/catalog/index.ts'
import type { Draw, Settlement, SettlementResult } from '../ledger.ts'
import type { HeldDraw, WalletLease } from '../pool/wallet-lease.ts'
import type { Awaited } from './deadlines.ts'

/** `unconfirmed`: it was not known in time whether the charge stands. It stays queued until it is. */
export type SettleOutcome = 'confirmed' | 'fenced' | 'unconfirmed'

/** What became of a charge. `fenced`: the call's claim belongs to a later call, and nothing was charged. */
export type ChargeOutcome = 'confirmed' | 'fenced' | 'voided'

/** What a call comes to. Its functions are asked when the ledger is, and perhaps again. */
export interface Bill {
  /** What is charged once. */
  readonly requestId: string
  /** The true cost, in nano-units. */
  readonly amount: bigint
  /** Milliseconds since the epoch. */
  readonly at: number
  /** How the amount came about, as JSON; the same each time. */
  basis(): string
  /** Completed with the charge, by a ledger that settles records. */
  readonly claim: Settlement['claim']
  /** The log entry to write with it, as of now. */
  readonly entry: (() => CallLogEntry | null) | null
  /** Called once with what became of it, also long after the call; again only where a charge that stood is revoked. */
  onResolved?(outcome: ChargeOutcome): void
}

/** The settlements of a pool, as a charge sees them. */
interface Settlements {
  readonly settlesRecords: boolean
  put(charge: Charge): SettlementResult | Promise<SettlementResult | 'late'>
  drop(charge: Charge): void
}

/** What a charge needs of its pool. */
export interface ChargeDeps {
  readonly settlements: Settlements
  readonly logger: Logger
}

/**
 * One call's charge on its way into the ledger, and out again where it is revoked. It is itself what the ledger is handed,
 * and its own place in the queue. What is costly to work out, it works out where the ledger reads it.
 */
export class Charge implements Settlement, Awaited<Charge> {
  kind: Settlement['kind'] = 'charge'
  readonly requestId: string
  readonly account: string
  readonly key: string | null
  readonly amount: bigint
  readonly at: number
  readonly claim: Settlement['claim']
  draws: readonly Draw[]
  /** Its place in the queue. Times are milliseconds of the clock. */
  since = 0
  /** How often it was handed to the ledger without an answer. */
  unanswered = 0
  /** How often it failed alone. */
  failures = 0
  /** How many others had been settled when it first did. */
  settledBefore = 0
  retryAt = 0
  /** Whether the log has it as set aside. */
  isLogged = false
  result: SettlementResult | undefined
  deadline: Awaited<Charge>['deadline']
  /** Answers whoever waits for it. */
  confirm: ((result: SettlementResult | 'late') => void) | undefined
  readonly #bill: Bill
  readonly #accountLease: WalletLease
  readonly #keyLease: WalletLease | undefined
  readonly #held: readonly HeldDraw[]
  readonly #deps: ChargeDeps
  /** `handed`: the ledger may have it. */
  #state: 'waiting' | 'handed' | 'stands' | 'over' = 'waiting'
  /** The log entry of a call that is not charged after all. */
  #revoked: { readonly entry: (() => CallLogEntry) | null } | undefined
  #isAside = false

  /** @param draws what the leases of the two wallets pay. */
  constructor(
    bill: Bill,
    account: WalletLease,
    key: WalletLease | undefined,
    draws: readonly HeldDraw[],
    deps: ChargeDeps,
  ) {
    this.requestId = bill.requestId
    this.account = account.id
    this.key = key ? key.id : null
    this.amount = bill.amount
    this.at = bill.at
    this.claim = bill.claim
    this.#bill = bill
    this.#accountLease = account
    this.#keyLease = key
    this.draws = draws
    this.#held = draws
    this.#deps = deps
    account.unhanded += bill.amount
    if (key) key.unhanded += bill.amount
  }

  get basis(): string | null {
    return this.kind === 'void' ? null : this.#evaluate(this.#bill.basis)
  }

  /** Handed again, it tells how the call has ended since. */
  get entry(): CallLogEntry | null {
    const { entry } = (this.kind === 'void' && this.#revoked) || this.#bill
    return entry && this.#evaluate(entry)
  }

  /** Enters the queue. */
  enter(now: number): void {
    this.since = now
    this.unanswered = 0
    this.failures = 0
    this.isLogged = false
    this.result = undefined
    this.confirm = undefined
  }

  /** Returns what its settling has come to for who waits for it. */
  outcomeOf(result: SettlementResult | 'late'): SettleOutcome {
    if (result === 'late' || this.#revoked) return 'unconfirmed'
    return result === 'fenced' ? 'fenced' : 'confirmed'
  }

  /** Notes that the ledger is handed it now. */
  hand(): void {
    if (this.#state !== 'waiting') return
    this.#state = 'handed'
    this.#accountLease.unhanded -= this.amount
    if (this.#keyLease) this.#keyLease.unhanded -= this.amount
  }

  /**
   * Notes what the ledger has answered.
   *
   * @param repeated whether it may have been settled before, without an answer.
   */
  settled(result: SettlementResult, repeated: boolean): void {
    if (this.kind === 'void') {
      this.#end('voided')
      return
    }
    // Where it stood before it was ever handed, another charge with this id drew.
    this.#concludeDraws(result === 'fenced' || (result === 'known' && !repeated))
    if (result === 'fenced') {
      this.#end('fenced')
      return
    }
    this.#state = 'stands'
    if (this.#revoked) this.#undo()
    else this.#notify('confirmed')
  }

  /** Notes that it fails while others are settled. True when it has become a void, which is worth another try. */
  setAside(): boolean {
    this.#isAside = true
    return this.#revoked !== undefined && this.kind === 'charge' && this.#voidUnseen()
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

  /** Logs a charge that the ledger has not taken, with all that is needed to write it by hand. */
  logUnsettled(error: unknown, message: string): void {
    const { kind, requestId, account, key, at, basis, claim } = this
    const draws = this.draws.map(({ lease, wallet, amount }) => ({
      lease,
      wallet,
      amount: formatAmount(amount),
    }))
    const amount = formatAmount(this.amount)
    const settlement = { kind, requestId, account, key, amount, at, claim, draws, basis }
    this.#deps.logger.error({ err: error, settlement }, message)
  }

  /** The ledger cannot know it: the money is there again at once. A record that hangs on it is freed all the same. */
  #revokeUnhanded(entry: (() => CallLogEntry) | null): 'queued' | 'dropped' {
    const { settlements } = this.#deps
    this.hand()
    this.#concludeDraws(true)
    this.#becomeVoid()
    if (settlements.settlesRecords && (entry || this.claim)) return 'queued'
    settlements.drop(this)
    this.#end('voided')
    return 'dropped'
  }

  /** It stands, and is undone by a void. */
  #undo(): void {
    this.#becomeVoid()
    void this.#deps.settlements.put(this)
  }

  /**
   * The ledger does not take it, and may have it all the same: it becomes a void. What the leases hold nobody knows
   * then, so they are given up.
   */
  #voidUnseen(): true {
    this.#concludeDraws(false)
    for (const { from, held } of this.#held) from.drop(held)
    this.#becomeVoid()
    return true
  }

  #becomeVoid(): void {
    this.kind = 'void'
    this.draws = []
  }

  #concludeDraws(returned: boolean): void {
    for (const draw of this.#held) draw.from.drawn(draw, returned)
  }

  /** What cannot be told of a charge does not keep it from being charged. */
  #evaluate<T>(question: (this: Bill) => T): T | null {
    try {
      return question.call(this.#bill)
    } catch (error) {
      const { requestId } = this
      this.#deps.logger.error({ err: error, requestId }, 'a charge is written without all that belongs to it')
      return null
    }
  }

  #end(outcome: ChargeOutcome): void {
    this.#state = 'over'
    this.#notify(outcome)
  }

  #notify(outcome: ChargeOutcome): void {
    try {
      this.#bill.onResolved?.(outcome)
    } catch (error) {
      const { requestId } = this
      this.#deps.logger.error({ err: error, requestId }, 'a listener to what became of a charge failed')
    }
  }
}
