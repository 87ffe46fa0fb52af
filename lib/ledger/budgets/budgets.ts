import { type Logger, quietLogger } from '../../core/call/index.ts'
import {
  aLogger,
  anObjectWith,
  aPollTime,
  checkOptions,
  type OptionRules,
  required,
} from '../../core/options/index.ts'
import { StoreGuard } from '../../core/store-guard/index.ts'
import { BackgroundLoop } from '../../core/timing/index.ts'
import type { WalletId } from '../wallet.ts'
import type { Budget, BudgetPeriod } from './budget.ts'
import { type BudgetedCall, BudgetIndex } from './budget-index.ts'

/** The budgets that have changed since a version, or some of them. */
export interface BudgetChanges {
  /** The version for the next read. */
  readonly version: number
  /** Deleted ones included. */
  readonly budgets: readonly (Budget & { readonly deleted: boolean })[]
  /** Whether there may be more. Defaults to false. */
  readonly more?: boolean
}

/** Options of {@link Budgets}. */
export interface BudgetsOptions {
  /** The store of the budgets: such as a `SqlBudgetStore`. */
  store: {
    /** Returns what has changed since a version; 0 for all. */
    changes(since: number): Promise<BudgetChanges>
    /** Records, once, that the budget of a wallet has refused a call. */
    noteRefusal(wallet: WalletId, at: number): Promise<void>
  }
  /** How often the store is read, in milliseconds; at most 4000: changes take effect within 5 s. Defaults to 2000. */
  pollMs?: number
  /** Logs outages of the store. Defaults to the console. */
  logger?: Logger
}

const RULES: OptionRules<BudgetsOptions> = {
  store: required(anObjectWith('a BudgetStore, such as a SqlBudgetStore', 'changes', 'noteRefusal')),
  pollMs: aPollTime,
  logger: aLogger,
}

const STORE_TIMEOUT_MS = 1000

/**
 * The budgets of a shared store, as this process knows them. During an outage of the store they stay as they are.
 *
 * @throws TypeError at construction when an option is unusable.
 * @example
 * const budgets = new Budgets({ store: new SqlBudgetStore(db) })
 * await budgets.refresh()
 * app.use(billingGuard({ pool, catalog, budgets }))
 */
export class Budgets {
  readonly #store: BudgetsOptions['store']
  readonly #logger: Logger
  readonly #guard: StoreGuard
  readonly #index = new BudgetIndex()
  /** The calls that budgets have refused, by the narrowest member of their scope. */
  readonly refusals = { account: 0, key: 0, user: 0, tag: 0 }
  /** The periods whose refusals are noted. */
  readonly #noted = new WeakSet<BudgetPeriod>()
  readonly #polling: BackgroundLoop
  #version = 0

  constructor(options: BudgetsOptions) {
    checkOptions('Budgets', options, RULES)
    const { store, pollMs = 2000 } = options
    this.#store = store
    const logger = quietLogger(options.logger)
    this.#logger = logger
    this.#guard = new StoreGuard({
      name: 'budgets',
      effect: 'budgets hold as they were last read',
      logger,
      timeoutMs: STORE_TIMEOUT_MS,
    })
    this.#polling = new BackgroundLoop(() => this.#read(), pollMs)
  }

  /** How many there are. */
  get count(): number {
    return this.#index.size
  }

  /**
   * Reads the store now.
   *
   * @throws {StoreAway} if the store does not answer; budgets stay as they are.
   */
  refresh(): Promise<void> {
    return this.#polling.runNow()
  }

  /** Returns the budgets that a call counts against, in the periods that are running at a time. */
  matching(call: BudgetedCall, at: number): readonly BudgetPeriod[] {
    return this.#index.matching(call, at)
  }

  /**
   * Counts a call that a budget refuses, and has the first refusal of a period reported to operators. Returns the message for
   * the caller.
   */
  refusal(refused: string, period: BudgetPeriod): { message?: string } {
    const narrowest = (['tag', 'user', 'key'] as const).find((member) => period.scope[member] !== null)
    this.refusals[narrowest ?? 'account']++
    // Other calls hold the rest, which comes back in seconds.
    if (refused === 'quota_lease_exhausted') return {}
    if (!this.#noted.has(period)) void this.#note(period)
    return { message: budgetRefusal(period) }
  }

  close(): void {
    void this.#polling.close()
  }

  async #note(period: BudgetPeriod): Promise<void> {
    this.#noted.add(period)
    try {
      await this.#guard.insist(() => this.#store.noteRefusal(period.wallet, Date.now()))
    } catch {
      // The guard has logged the outage. The next refusal is noted.
      this.#noted.delete(period)
    }
  }

  async #read(): Promise<void> {
    for (let more = true; more; ) {
      const changes = await this.#guard.insist(() => this.#store.changes(this.#version))
      for (const budget of changes.budgets) {
        if (budget.deleted) this.#index.delete(budget.id)
        else this.#set(budget)
      }
      this.#version = changes.version
      more = changes.more ?? false
    }
  }

  #set(budget: Budget): void {
    try {
      this.#index.set(budget)
    } catch (error) {
      // Another process may know more time zones. The other budgets hold.
      this.#logger.error(
        { err: error, budget: budget.id },
        'budgets: a budget does not count in this process',
      )
    }
  }
}

/** Returns the message for the caller of a budget that refuses: whose it is and when it resets, but no amount. */
export function budgetRefusal({ scope: { key, user, tag }, endsAt }: BudgetPeriod): string {
  const owners = [
    key !== null && 'the key',
    user !== null && `the user "${user}"`,
    tag !== null && `the tag "${tag}"`,
  ]
  const owner = owners.filter((each) => each !== false).join(' with ') || 'the account'
  const until = endsAt === null ? '' : ` It resets at ${new Date(endsAt).toISOString()}.`
  return `The budget of ${owner} does not cover this call.${until} The operator of the gateway can raise it.`
}
