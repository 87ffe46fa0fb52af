import {
  aChangeLog,
  type ChangeOrigin,
  MemoryChangeLog,
  type RecordedChange,
} from '../../../core/change-log/index.ts'
import {
  aListOf,
  anObjectWith,
  checkOptions,
  type OptionRules,
  required,
} from '../../../core/options/index.ts'
import { accountSettingsOf, type ConfigAccount } from '../authority/config-settings.ts'
import { pageById } from '../page-by-id.ts'
import { depositChange, settingsChange } from '../recorded-change.ts'
import { SerialQueue } from '../serial-queue.ts'
import type { Account, AccountSettings, AccountStore, DepositOutcome } from './account-store.ts'
import { holdsDeposits, type KnownDeposit, repeatedDeposit } from './deposit-rules.ts'
import { type DirectoryAccount, directoryAccount } from './directory-account.ts'

/** Options of {@link MemoryAccountStore}. */
export interface MemoryAccountStoreOptions {
  /** The ledger, such as a `MemoryLedger`. */
  ledger: {
    deposit(
      account: string,
      amount: bigint,
      reference: string,
      at: number,
    ): Promise<'deposited' | 'known' | 'conflict'>
    setLimit(wallet: `account:${string}`, limit: { readonly limited: boolean }): Promise<void>
    wallets(ids: readonly `account:${string}`[]): Promise<readonly { readonly funds: bigint }[]>
  }
  /** The directory that `authenticate` reads, such as a `MemoryKeyDirectory`. Gets each changed account. Defaults to none. */
  keys?: {
    setAccount(account: DirectoryAccount): void
  }
  /** The initial accounts; the ledger has them too. Defaults to none. */
  accounts?: readonly ConfigAccount[]
  /** The log of changes. Defaults to a new one. */
  changes?: MemoryChangeLog
}

const RULES: OptionRules<MemoryAccountStoreOptions> = {
  ledger: required(anObjectWith('the ledger that the billing guard uses', 'deposit', 'setLimit', 'wallets')),
  keys: anObjectWith('the directory that authenticate asks', 'setAccount'),
  accounts: aListOf('a list of accounts, each with its "id"', 'id'),
  changes: aChangeLog,
}

/**
 * An account store in this process's memory.
 *
 * @throws TypeError at construction without a ledger.
 * @example
 * const accounts = new MemoryAccountStore({ ledger, keys, accounts: config.accounts })
 */
export class MemoryAccountStore implements AccountStore {
  readonly #ledger: MemoryAccountStoreOptions['ledger']
  readonly #keys: MemoryAccountStoreOptions['keys']
  readonly #accounts = new Map<string, Account>()
  readonly #deposits = new Map<string, KnownDeposit>()
  readonly #changes: MemoryChangeLog
  /** Runs one change at a time. */
  readonly #queue = new SerialQueue()

  constructor(options: MemoryAccountStoreOptions) {
    checkOptions('MemoryAccountStore', options, RULES)
    const { ledger, keys, accounts = [], changes } = options
    this.#ledger = ledger
    this.#keys = keys
    this.#changes = changes ?? new MemoryChangeLog()
    const createdAt = Date.now()
    for (const account of accounts)
      this.#accounts.set(account.id, { id: account.id, ...accountSettingsOf(account), createdAt })
  }

  /** All changes of the log, oldest first. */
  get changes(): readonly RecordedChange[] {
    return this.#changes.all
  }

  /** Returns an account as it is now. */
  get(id: string): Account | undefined {
    return this.#accounts.get(id)
  }

  async list(limit: number, after?: string): Promise<readonly Account[]> {
    return pageById(this.#accounts.values(), limit, after)
  }

  async find(id: string): Promise<Account | undefined> {
    return this.#accounts.get(id)
  }

  create(id: string, settings: AccountSettings, origin: ChangeOrigin): Promise<Account | undefined> {
    return this.#queue.run(async () => {
      if (this.#accounts.has(id)) return undefined
      await this.#ledger.setLimit(`account:${id}`, { limited: settings.prepaid })
      return this.#save({ ...settings, id, createdAt: origin.at }, undefined, origin)
    })
  }

  change(
    id: string,
    revise: (settings: AccountSettings) => AccountSettings,
    origin: ChangeOrigin,
  ): Promise<Account | undefined> {
    return this.#queue.run(async () => {
      const before = this.#accounts.get(id)
      if (!before) return undefined
      const settings = revise(before)
      if (settings.prepaid !== before.prepaid)
        await this.#ledger.setLimit(`account:${id}`, { limited: settings.prepaid })
      return this.#save({ ...settings, id, createdAt: before.createdAt }, before, origin)
    })
  }

  deposit(
    id: string,
    amount: bigint,
    reference: string,
    origin: ChangeOrigin,
    reason: string | null = null,
  ): Promise<DepositOutcome> {
    return this.#queue.run(async () => {
      const account = this.#accounts.get(id)
      if (!account) return { kind: 'no_account' }
      const earlier = this.#deposits.get(`${id} ${reference}`)
      if (earlier) return repeatedDeposit(earlier, { amount, reason })
      const [wallet] = await this.#ledger.wallets([`account:${id}`])
      const funds = wallet?.funds ?? 0n
      if (!holdsDeposits(funds + amount)) return { kind: 'too_much' }
      const kind = await this.#ledger.deposit(id, amount, reference, origin.at)
      // A deposit that only the ledger knows was made with the account.
      if (kind === 'known' && reason !== null) return { kind: 'conflict' }
      if (kind !== 'deposited') return { kind, at: account.createdAt, reason }
      this.#deposits.set(`${id} ${reference}`, { amount, at: origin.at, reason })
      this.#changes.add(depositChange(id, { funds, amount, reference, reason }, origin))
      return { kind, at: origin.at, reason }
    })
  }

  #save(account: Account, before: Account | undefined, origin: ChangeOrigin): Account {
    const change = settingsChange(account, before, origin)
    if (!change) return account
    this.#accounts.set(account.id, account)
    this.#keys?.setAccount(directoryAccount(account))
    this.#changes.add(change)
    return account
  }
}
