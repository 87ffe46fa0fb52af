import { aChangeLog, type ChangeOrigin, MemoryChangeLog } from '../../../core/change-log/index.ts'
import { anObjectWith, checkOptions, type OptionRules, required } from '../../../core/options/index.ts'
import { type Budget, type BudgetTerms, budgetOfWallet } from '../../../ledger/budgets/budget.ts'
import type { BudgetChanges } from '../../../ledger/budgets/budgets.ts'
import type { WalletId } from '../../../ledger/index.ts'
import type { WebhookOutbox } from '../../../webhooks/index.ts'
import { pageById } from '../page-by-id.ts'
import { SerialQueue } from '../serial-queue.ts'
import { budgetChange, budgetTermsChange, walletsToChange } from './budget-change.ts'
import { budgetEvent, thresholdsOf } from './budget-events.ts'
import { type BudgetCreation, type BudgetQuery, type BudgetStore, MAX_BUDGETS } from './budget-store.ts'

/** Options of {@link MemoryBudgetStore}. */
export interface MemoryBudgetStoreOptions {
  /** The ledger, such as a `MemoryLedger`. */
  ledger: {
    setLimit(wallet: WalletId, limit: { limited: boolean; quota?: bigint }): Promise<void>
    wallets(
      ids: readonly WalletId[],
    ): Promise<readonly { readonly wallet: WalletId; readonly spent: bigint }[]>
    openBudgetsBy(budgets: {
      termsOf(budget: string): BudgetTerms | undefined
      spent(wallet: WalletId, before: bigint, now: bigint): void
    }): void
  }
  /** The accounts, such as a `MemoryAccountStore`. */
  accounts: { get(id: string): object | undefined }
  /** The keys, such as a `MemoryKeyStore`. Defaults to none: a budget may name any key. */
  keys?: { find(id: string): Promise<{ readonly account: string } | undefined> }
  /** The log of changes. Defaults to a new one. */
  changes?: MemoryChangeLog
  /** Where `budget.threshold` and `budget.exhausted` are told. Defaults to nowhere. */
  outbox?: Pick<WebhookOutbox, 'record'>
}

const RULES: OptionRules<MemoryBudgetStoreOptions> = {
  ledger: required(
    anObjectWith('the ledger that the billing guard uses', 'setLimit', 'wallets', 'openBudgetsBy'),
  ),
  accounts: required(anObjectWith('a MemoryAccountStore', 'get')),
  keys: anObjectWith('a MemoryKeyStore', 'find'),
  changes: aChangeLog,
  outbox: anObjectWith('an outbox, such as new MemoryWebhooks()', 'record'),
}

/**
 * A budget store in this process's memory.
 *
 * @throws TypeError at construction without a ledger or accounts.
 * @example
 * const budgets = new MemoryBudgetStore({ ledger, accounts, keys })
 */
export class MemoryBudgetStore implements BudgetStore {
  readonly #options: MemoryBudgetStoreOptions
  readonly #budgets = new Map<string, Budget>()
  /** The last change of each budget, deleted ones included. */
  readonly #versions = new Map<string, { readonly version: number; readonly budget: Budget }>()
  readonly #changes: MemoryChangeLog
  readonly #queue = new SerialQueue()
  #version = 0

  constructor(options: MemoryBudgetStoreOptions) {
    checkOptions('MemoryBudgetStore', options, RULES)
    this.#options = options
    this.#changes = options.changes ?? new MemoryChangeLog()
    options.ledger.openBudgetsBy({
      termsOf: (id) => this.#budgets.get(id),
      spent: (wallet, before, now) => this.#tellReached(wallet, before, now),
    })
  }

  async list({ account, after, limit }: BudgetQuery): Promise<readonly Budget[]> {
    const all = [...this.#budgets.values()]
    const found = account === undefined ? all : all.filter(({ scope }) => scope.account === account)
    return pageById(found, limit, after)
  }

  async find(id: string): Promise<Budget | undefined> {
    return this.#budgets.get(id)
  }

  create(budget: Budget, origin: ChangeOrigin): Promise<BudgetCreation> {
    const { accounts, keys } = this.#options
    const { account, key } = budget.scope
    return this.#queue.run(async () => {
      if (!accounts.get(account)) return 'no_account'
      if (key !== null && keys && (await keys.find(key))?.account !== account) return 'no_key'
      const own = [...this.#budgets.values()].filter(({ scope }) => scope.account === account)
      if (own.length >= MAX_BUDGETS) return 'too_many'
      this.#save(budget)
      this.#changes.add(budgetChange('budget.created', budget, origin))
      return 'created'
    })
  }

  change(
    id: string,
    revise: (terms: BudgetTerms) => BudgetTerms,
    origin: ChangeOrigin,
  ): Promise<Budget | undefined> {
    return this.#queue.run(async () => {
      const before = this.#budgets.get(id)
      if (!before) return undefined
      const budget = { ...before, ...revise(before) }
      const change = budgetTermsChange(budget, before, origin)
      if (!change) return before
      this.#save(budget)
      await this.#limit(budget, { limited: budget.hard, quota: budget.amount }, origin.at)
      for (const { wallet, spent } of await this.#options.ledger.wallets(walletsToChange(budget, origin.at)))
        this.#tellReached(wallet, -1n, spent)
      this.#changes.add(change)
      return budget
    })
  }

  delete(id: string, origin: ChangeOrigin): Promise<boolean> {
    return this.#queue.run(async () => {
      const budget = this.#budgets.get(id)
      if (!budget) return false
      this.#save(budget)
      this.#budgets.delete(id)
      await this.#limit(budget, { limited: false }, origin.at)
      this.#changes.add(budgetChange('budget.deleted', budget, origin))
      return true
    })
  }

  async changes(since: number): Promise<BudgetChanges> {
    const changed = [...this.#versions.values()].filter(({ version }) => version > since)
    const budgets = changed.map(({ budget }) => ({ ...budget, deleted: !this.#budgets.has(budget.id) }))
    return { version: this.#version, budgets }
  }

  async noteRefusal(wallet: WalletId, at: number): Promise<void> {
    const terms = this.#budgets.get(budgetOfWallet(wallet) ?? '')
    const exhausted = terms && thresholdsOf(terms).at(-1)
    const [found] = await this.#options.ledger.wallets([wallet])
    if (exhausted && found)
      await this.#options.outbox?.record([budgetEvent(wallet, terms, exhausted, found.spent, at)])
  }

  /** The outbox leaves out what was told before. */
  #tellReached(wallet: WalletId, before: bigint, now: bigint): void {
    const terms = this.#budgets.get(budgetOfWallet(wallet) ?? '')
    const reached = terms && thresholdsOf(terms).filter(({ amount }) => before < amount && amount <= now)
    if (!reached || reached.length === 0) return
    const at = Date.now()
    // An outbox in memory has it at once.
    void this.#options.outbox?.record(
      reached.map((each) => budgetEvent(wallet, terms, each, each.amount, at)),
    )
  }

  #save(budget: Budget): void {
    this.#budgets.set(budget.id, budget)
    this.#versions.set(budget.id, { version: ++this.#version, budget })
  }

  async #limit(budget: Budget, limit: { limited: boolean; quota?: bigint }, at: number): Promise<void> {
    for (const wallet of walletsToChange(budget, at)) await this.#options.ledger.setLimit(wallet, limit)
  }
}
