import type { CallLogEntry, Logger } from '../../core/call/index.ts'
import { formatAmount } from '../../core/catalog/index.ts'
import type { CallUsage } from '../../core/usage/index.ts'
import type { Settlement, SettlementResult } from '../ledger.ts'
import type { HeldDraw, WalletLease } from '../pool/wallet-lease.ts'
import { type WalletId, walletsOf } from '../wallet.ts'
import type { Bill, ChargeOutcome, SettleOutcome } from './bill.ts'
import type { WithDeadline } from './deadlines.ts'

const PLAIN_BYTES = 2048
const NO_WALLETS: readonly WalletId[] = []

/** The settlements of a pool that a charge uses. */
interface Settlements {
  readonly settlesRecords: boolean
  put(charge: Charge): SettleOutcome | Promise<SettleOutcome>
  drop(charge: Charge): void
}

/** The parts of a pool that a charge needs. */
export interface ChargeDeps {
  readonly settlements: Settlements
  readonly logger: Logger
}

/**
 * One call's charge on its way into the ledger, and its void if it is revoked. It is itself the settlement that the
 * ledger gets and the element of the queue. Expensive members are computed when the ledger reads them.
 */
export class Charge implements Settlement, WithDeadline<Charge> {
  kind: Settlement['kind'] = 'charge'
  readonly requestId: string
  readonly account: string
  readonly key: string | null
  readonly amount: bigint
  readonly cost: bigint | null
  readonly at: number
  readonly claim: Settlement['claim']
  readonly usage: CallUsage | null
  /** About how many bytes it takes, here and in the ledger's hands. */
  readonly bytes: number
  readonly budgets: readonly WalletId[]
  /** The amounts that the leases of its wallets pay. */
  draws: readonly HeldDraw[]
  /** When it entered the queue, in milliseconds of the clock. */
  since = 0
  /** How often it was handed to the ledger without an answer. */
  unanswered = 0
  /** How often it failed alone. */
  failures = 0
  /** How many others had been settled when it first failed alone. */
  settledBefore = 0
  retryAt = 0
  /** Why it was set aside. */
  error: unknown
  /** Whether it has been logged as set aside. */
  isLogged = false
  result: SettlementResult | undefined
  deadline: WithDeadline<Charge>['deadline']
  /** Resolves the promise of the waiting call. */
  confirm: ((outcome: SettleOutcome) => void) | undefined
  #bill: Bill
  readonly #accountLease: WalletLease
  readonly #keyLease: WalletLease | undefined
  readonly #budgetLeases: readonly WalletLease[]
  readonly #deps: ChargeDeps
  /** `waiting`: its wallets count it as not handed over. `handed`: the ledger may have it. */
  #state: 'new' | 'waiting' | 'handed' | 'stands' | 'over' = 'new'
  /** The log entry of a call that is not charged after all. */
  #revoked: { readonly entry: (() => CallLogEntry | null) | null } | undefined
  /** Whether it is set aside: the ledger does not have it, and is not about to. */
  #isAside = false

  constructor(
    bill: Bill,
    account: WalletLease,
    key: WalletLease | undefined,
    budgets: readonly WalletLease[],
    draws: readonly HeldDraw[],
    deps: ChargeDeps,
  ) {
    this.requestId = bill.requestId
    this.account = account.id
    this.key = key ? key.id : null
    this.amount = bill.amount
    this.cost = bill.cost ?? null
    this.at = bill.at
    this.claim = bill.claim
    this.usage = bill.usage ?? null
    this.bytes = bill.bytes ?? PLAIN_BYTES
    this.#bill = bill
    this.#accountLease = account
    this.#keyLease = key
    this.#budgetLeases = budgets
    this.budgets = budgets.length === 0 ? NO_WALLETS : budgets.map(({ wallet }) => wallet)
    this.draws = draws
    this.#deps = deps
  }

  get basis(): string | null {
    return this.kind === 'void' ? null : this.#evaluate(this.#bill.basis)
  }

  /** If the charge is handed over again, the entry shows how the call has ended meanwhile. */
  get entry(): CallLogEntry | null {
    const { entry } = (this.kind !== 'charge' && this.#revoked) || this.#bill
    return entry && this.#evaluate(entry)
  }

  /** Reads another bill of the same from now on. */
  replaceBill(bill: Bill): void {
    this.#bill = bill
    if (this.#revoked?.entry) this.#revoked = { entry: bill.entry?.bind(bill) ?? null }
  }

  /** Whether it changes one of these wallets. */
  isOn(wallets: ReadonlySet<WalletId>): boolean {
    return walletsOf(this).some((id) => wallets.has(id))
  }

  /** Converts the result of the settlement to the outcome for the call. */
  outcomeOf(result: SettlementResult): SettleOutcome {
    if (this.#revoked) return 'unconfirmed'
    return result === 'fenced' ? 'fenced' : 'confirmed'
  }

  /** Records that the charge has to wait before it is handed to the ledger. A void of one that stands has been handed over. */
  wait(): void {
    if (this.#state !== 'new') return
    this.#state = 'waiting'
    this.#countUnhanded(this.amount)
  }

  /** Records that the charge is being handed to the ledger. One that the ledger may have is not to stand once it is revoked. */
  hand(): void {
    this.#isAside = false
    if (this.#revoked && this.kind === 'charge') this.kind = 'revoked'
    if (this.#state === 'waiting') this.#countUnhanded(-this.amount)
    else if (this.#state !== 'new') return
    this.#state = 'handed'
  }

  #countUnhanded(amount: bigint): void {
    this.#accountLease.unhanded += amount
    if (this.#keyLease) this.#keyLease.unhanded += amount
    for (const lease of this.#budgetLeases) lease.unhanded += amount
  }

  /**
   * Records the ledger's answer.
   *
   * @param repeated whether it may have been settled before, without an answer.
   */
  settled(result: SettlementResult, repeated: boolean): void {
    if (this.kind === 'void') {
      this.#end('voided')
      return
    }
    // The charge was known before it was ever handed over, so another charge with this id made the draws.
    this.#concludeDraws(result === 'fenced' || (result === 'known' && !repeated))
    if (result === 'fenced' || this.kind === 'revoked') {
      this.#end(result === 'fenced' ? 'fenced' : 'voided')
      return
    }
    this.#state = 'stands'
    if (this.#revoked) this.#undo()
    else this.#notify('confirmed')
  }

  /** Records a failure while others are settled. Returns true if the charge became a void, to be tried. */
  setAside(): boolean {
    this.#isAside = true
    return this.#revoked !== undefined && this.kind !== 'void' && this.#voidUnseen()
  }

  /**
   * Undoes the charge.
   *
   * @returns `dropped` if nothing has to be written for that.
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

  /** Logs a charge that the ledger has not taken, with everything that is needed to write it by hand. */
  logUnsettled(error: unknown, message: string): void {
    const { kind, requestId, account, key, budgets, at, basis, claim } = this
    const draws = this.draws.map(({ lease, wallet, amount }) => ({
      lease,
      wallet,
      amount: formatAmount(amount),
    }))
    const amount = formatAmount(this.amount)
    const cost = this.cost === null ? null : formatAmount(this.cost)
    const settlement = { kind, requestId, account, key, budgets, amount, cost, at, claim, draws, basis }
    this.#deps.logger.error({ err: error, settlement }, message)
  }

  /** Undoes a charge that the ledger cannot have: the money is returned at once. Its claim is still freed. */
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

  /** Undoes a stored charge by a void. */
  #undo(): void {
    this.#becomeVoid()
    this.failures = 0
    this.isLogged = false
    this.result = undefined
    this.confirm = undefined
    void this.#deps.settlements.put(this)
  }

  /**
   * Turns a charge that the ledger refuses into a void, because the ledger may have it nevertheless. The amount in its
   * leases is unknown then, so they are given up.
   */
  #voidUnseen(): true {
    this.#concludeDraws(false)
    for (const { from, held } of this.draws) from.drop(held)
    this.#becomeVoid()
    return true
  }

  #becomeVoid(): void {
    this.kind = 'void'
    this.draws = []
  }

  #concludeDraws(returned: boolean): void {
    for (const draw of this.draws) draw.from.drawn(draw, returned)
  }

  /** Calls a function of the bill. If it throws, the charge is written without its value. */
  #evaluate<T>(question: (this: Bill) => T): T | null {
    try {
      return question.call(this.#bill)
    } catch (error) {
      const { requestId } = this
      this.#deps.logger.error({ err: error, requestId }, 'a charge is written without its basis or log entry')
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
      this.#deps.logger.error({ err: error, requestId }, 'a listener to the outcome of a charge failed')
    }
  }
}
