import { parseAmount } from '../../core/catalog/index.ts'
import { aListOf, aNumber, checkOptions, type OptionRules, oneOf } from '../../core/options/index.ts'
import { MemoryUsageStore } from '../../core/usage/index.ts'
import { auditLedger } from '../audit.ts'
import { budgetOfWallet } from '../budgets/budget.ts'
import {
  assertChange,
  changeLease,
  ENDED_KEPT_MS,
  type LeaseRecord,
  sweepLease,
  type WalletFigures,
} from '../lease.ts'
import type {
  DepositResult,
  LeaseAnswer,
  LeaseChange,
  Ledger,
  LedgerAdmin,
  LedgerCheck,
  OpenLease,
  Settlement,
  SettlementResult,
  WalletStatement,
} from '../ledger.ts'
import { assertSettlement, type HoldRelease, plan, type SettlementRows } from '../plan.ts'
import { accountWallet, assertLimit, keyWallet, type WalletId } from '../wallet.ts'
import { MemoryHolds } from './memory-holds.ts'
import { MemoryCharges, MemoryWallets } from './memory-records.ts'

/** Options of {@link MemoryLedger}. `loadConfig` returns accounts and keys in this form. */
export interface MemoryLedgerOptions {
  /** `balance`: a decimal string; an account without one is postpaid. Defaults to none. */
  accounts?: readonly { readonly id: string; readonly balance?: string | undefined }[]
  /** `quota`: a decimal string; a key without one, or that is not given, may spend what its account has. Defaults to none. */
  keys?: readonly { readonly id: string; readonly quota?: string | undefined }[]
  /**
   * The treatment of accounts that are not given: `refuse` refuses their calls, `postpaid` serves all and only counts what
   * they spend. Defaults to `refuse`.
   */
  unknownAccounts?: 'refuse' | 'postpaid'
  /**
   * Most charges stored one by one, at least 2. When there are so many, the older half is merged into a sum per account and
   * key; if one of them were settled again, it would be charged again. Defaults to 20000, as many as `MemoryCallStore` holds
   * entries.
   */
  maxCharges?: number
}

const RULES: OptionRules<MemoryLedgerOptions> = {
  accounts: aListOf('a list of accounts, each with its "id"', 'id'),
  keys: aListOf('a list of keys, each with its "id"', 'id'),
  unknownAccounts: oneOf('refuse', 'postpaid'),
  maxCharges: aNumber('at least 2', 2),
}

/**
 * A ledger in this process's memory. It serves one process and ends with it. Charges are stored at once.
 *
 * @throws TypeError at construction if an option is invalid.
 * @throws RangeError at construction if an amount is not a decimal.
 * @example
 * const ledger = new MemoryLedger({ accounts: [{ id: 'acme', balance: '25.00' }], keys: [{ id: 'key_acme', quota: '5.00' }] })
 * @example
 * const ledger = new MemoryLedger(loadConfig(source, process.env))
 */
export class MemoryLedger implements Ledger, LedgerAdmin {
  /** Claims and log entries are stored elsewhere. */
  readonly settlesRecords = false
  /** Holds for work that lasts longer than a call, for a `MemoryTaskStore`. */
  readonly holds: MemoryHolds
  /** The sums of its charges. */
  readonly usage = new MemoryUsageStore()
  readonly #postpaid: boolean
  readonly #wallets = new MemoryWallets()
  readonly #leases = new Map<string, LeaseRecord>()
  readonly #charges: MemoryCharges
  /** The rows of settlements that end no hold. */
  readonly #rows: SettlementRows

  constructor(options: MemoryLedgerOptions = {}) {
    // It takes a whole config, too.
    checkOptions('MemoryLedger', options, RULES, { others: 'ignored' })
    const { accounts = [], keys = [], unknownAccounts = 'refuse', maxCharges = 20_000 } = options
    this.#postpaid = unknownAccounts === 'postpaid'
    this.#charges = new MemoryCharges(maxCharges)
    this.#rows = {
      wallets: this.#wallets,
      leases: this.#leases,
      charges: this.#charges,
      holds: new Map(),
      // Claims and log entries are stored elsewhere.
      owns: () => true,
    }
    this.holds = new MemoryHolds(this.#wallets, {
      opensUnknown: this.#postpaid,
      isCharged: (requestId) => this.#charges.get(requestId) !== undefined,
      settle: (settlement, held) => {
        this.#settle([settlement], { ...this.#rows, holds: new Map([[settlement.requestId, held]]) })
      },
    })
    for (const { id, balance } of accounts) {
      if (balance === undefined) this.#wallets.open(accountWallet(id))
      else this.#wallets.deposit(id, parseAmount(balance), 'opening', true)
    }
    for (const { id, quota } of keys) {
      const wallet = this.#wallets.open(keyWallet(id), quota !== undefined)
      if (quota !== undefined) wallet.funds = parseAmount(quota)
    }
  }

  async change(owner: string, changes: readonly LeaseChange[]): Promise<readonly LeaseAnswer[]> {
    changes.forEach(assertChange)
    const now = Date.now()
    return changes.map((change) => {
      // The wallet of a budget is opened without a limit.
      if (budgetOfWallet(change.wallet) !== undefined) this.#wallets.open(change.wallet)
      const wallet = this.#wallets.get(change.wallet) ?? (this.#postpaid ? POSTPAID : undefined)
      const { answer, lease } = changeLease(wallet, this.#leases.get(change.lease), { ...change, owner }, now)
      if (lease) this.#leases.set(lease.id, lease)
      return answer
    })
  }

  async renew(leases: readonly string[], at: number): Promise<ReadonlySet<string>> {
    this.#forgetEnded(Date.now() - ENDED_KEPT_MS)
    const kept = new Set<string>()
    for (const id of new Set(leases)) {
      const lease = this.#leases.get(id)
      if (!lease || lease.ended) continue
      lease.beats += 1
      lease.renewedAt = at
      kept.add(id)
    }
    return kept
  }

  settle(settlements: readonly Settlement[]): readonly SettlementResult[] {
    settlements.forEach(assertSettlement)
    return this.#settle(settlements)
  }

  async leases(): Promise<readonly OpenLease[]> {
    const open = [...this.#leases.values()].filter(({ ended }) => ended === null)
    return open.map(({ id, wallet, owner, held, beats, renewedAt }) => {
      return { id, wallet, owner, held, beats, renewedAt }
    })
  }

  async sweep(id: string, beats: number): Promise<boolean> {
    const lease = this.#leases.get(id)
    const wallet = lease && this.#wallets.get(lease.wallet)
    if (!wallet || lease.beats !== beats) return false
    if (!lease.ended) sweepLease(wallet, lease, Date.now())
    return lease.ended === 'swept'
  }

  async deposit(account: string, amount: bigint, reference: string, _at?: number): Promise<DepositResult> {
    return this.#wallets.deposit(account, amount, reference, !this.#postpaid)
  }

  async wallets(ids: readonly WalletId[]): Promise<readonly WalletStatement[]> {
    return ids.map((id) => this.#wallets.statement(id)).filter((statement) => statement !== undefined)
  }

  async setLimit(wallet: WalletId, limit: { limited: boolean; quota?: bigint }): Promise<void> {
    assertLimit(wallet, limit)
    this.#wallets.setLimit(wallet, limit)
  }

  check(): Promise<LedgerCheck> {
    // Copied first, because calls go on during the audit.
    return auditLedger({
      deposits: [this.#wallets.deposits()],
      charges: [this.#charges.charges()],
      voids: [this.#charges.voids()],
      leases: [Array.from(this.#leases.values(), (lease) => ({ ...lease })), this.holds.onBudgets()],
      holds: [this.holds.all()],
      usage: [this.usage.charged()],
      wallets: [this.#wallets.all()],
    })
  }

  #settle(
    settlements: readonly (Settlement | HoldRelease)[],
    rows = this.#rows,
  ): readonly SettlementResult[] {
    const writes = plan(settlements, rows)
    for (const id of writes.openedWallets) this.#wallets.open(id)
    for (const { id, spent, leased, overrun } of writes.wallets) {
      const wallet = this.#wallets.open(id)
      wallet.spent += spent
      wallet.leased += leased
      wallet.overrun += overrun
    }
    for (const { lease: id, amount } of writes.draws) {
      const lease = this.#leases.get(id)
      if (lease) lease.held -= amount
    }
    for (const { charge, isUndone } of writes.charges) {
      this.#charges.add(charge)
      if (!isUndone) this.usage.add(charge)
    }
    for (const { requestId } of writes.voids) this.#charges.void(requestId)
    for (const share of writes.usage.undone)
      this.usage.add({ ...share, amount: share.charged, usage: share }, -1)
    return writes.results
  }

  /** Leases are in the order in which they were opened, not ended. */
  #forgetEnded(before: number): void {
    for (const [id, { endedAt }] of this.#leases)
      if (endedAt !== null && endedAt < before) this.#leases.delete(id)
  }
}

const POSTPAID: Readonly<WalletFigures> = { limited: false, funds: 0n, spent: 0n, leased: 0n, overrun: 0n }
