import { WalletsHeldUp } from '../held-up.ts'
import type { Hold } from '../hold.ts'
import type {
  DepositResult,
  LeaseAnswer,
  LeaseChange,
  Ledger,
  LedgerBooks,
  LedgerCheck,
  OpenLease,
  Settlement,
  SettlementResult,
  WalletState,
  WalletStatement,
} from '../ledger.ts'
import { type WalletId, walletsOf } from '../wallet.ts'
import type { HomeExchange } from './home-exchange.ts'
import { KnownHomes } from './known-homes.ts'
import type { ShareStore } from './region-store.ts'

/** The parts that {@link RegionalLedger} works with. */
export interface RegionalLedgerOptions {
  /** The ledger of this region. */
  readonly ledger: Ledger & LedgerBooks
  readonly shares: Pick<ShareStore, 'homesOf'>
  /** The other regions, by their names. */
  readonly homes: ReadonlyMap<string, Pick<HomeExchange, 'away' | 'demand'>>
}

/** What a home has told of a wallet, or that it does not answer. */
interface Told {
  readonly at: number
  readonly away: boolean
  readonly moved: bigint
  readonly elsewhere: bigint
}

/** A home that had nothing to give is asked again after this long, in milliseconds, and so is one that is away. */
const AGAIN_MS = 500
/** What a home has told of a balance is used for this long, in milliseconds. */
const BELIEVED_MS = 5000
/** Until home has told: more than any call costs, and less than would overflow. */
const UNKNOWN = 2n ** 61n
/** So many times what a process wants: it gets no more than a tenth of what the region has. */
const TIMES = 10n
const MAX_WALLETS = 50_000

/**
 * The ledger of a region, in which wallets of other regions are shares. A call that a share does not cover waits while the home
 * of the wallet is asked for more; nobody else's does.
 */
export class RegionalLedger implements Ledger, LedgerBooks {
  readonly #ledger: Ledger & LedgerBooks
  readonly #shares: Pick<ShareStore, 'homesOf'>
  readonly #exchanges: RegionalLedgerOptions['homes']
  readonly #homes: KnownHomes<WalletId>
  readonly #told = new Map<WalletId, Told>()
  readonly #asking = new Set<WalletId>()
  #used = new Set<WalletId>()

  constructor({ ledger, shares, homes }: RegionalLedgerOptions) {
    this.#ledger = ledger
    this.#shares = shares
    this.#homes = new KnownHomes((wallets) => shares.homesOf(wallets))
    this.#exchanges = homes
  }

  get settlesRecords(): boolean {
    return this.#ledger.settlesRecords
  }

  get gathers(): boolean {
    return this.#ledger.gathers ?? false
  }

  get settlesAtOnce(): number {
    return this.#ledger.settlesAtOnce ?? 1
  }

  /** Returns the wallets of other regions that were used since the last time. */
  takeUsed(): readonly WalletId[] {
    const used = [...this.#used]
    this.#used = new Set()
    return used
  }

  /** @throws {WalletsHeldUp} also while homes are asked for wallets: the changes are to be repeated, those of other wallets at once. */
  async change(owner: string, changes: readonly LeaseChange[]): Promise<readonly LeaseAnswer[]> {
    if (this.#asking.size > 0) this.#holdUp(changes.filter(({ wallet }) => this.#asking.has(wallet)))
    const answers = await this.#ledger.change(owner, changes)
    // A wallet that is not there may come, as that of another region.
    const open = changes.filter((_change, i) => answers[i]?.state !== undefined)
    const homes = await this.#homes.of(changes.map(walletIn), open.map(walletIn))
    const lacking: LeaseChange[] = []
    const told = changes.map((change, i) => {
      const answer = answers[i] as LeaseAnswer
      const home = homes.get(change.wallet)
      if (!home) return answer
      this.#used.add(change.wallet)
      if (!answer.state?.limited) return answer
      if (lacks(change, answer) && this.#ask(home, change)) lacking.push(change)
      return { ...answer, state: this.#inAll(change.wallet, answer.state) }
    })
    this.#holdUp(lacking)
    return told
  }

  renew(leases: readonly string[], at: number): Promise<ReadonlySet<string>> {
    return this.#ledger.renew(leases, at)
  }

  settle(
    settlements: readonly Settlement[],
  ): readonly SettlementResult[] | Promise<readonly SettlementResult[]> {
    return this.#ledger.settle(settlements)
  }

  async flush(): Promise<void> {
    await this.#ledger.flush?.()
  }

  leases(): Promise<readonly OpenLease[]> {
    return this.#ledger.leases()
  }

  watch(watcher: string): Promise<readonly OpenLease[] | undefined> {
    return this.#ledger.watch?.(watcher) ?? this.#ledger.leases()
  }

  sweep(lease: string, beats: number): Promise<boolean> {
    return this.#ledger.sweep(lease, beats)
  }

  deposit(account: string, amount: bigint, reference: string, at: number): Promise<DepositResult> {
    return this.#ledger.deposit(account, amount, reference, at)
  }

  wallets(ids: readonly WalletId[]): Promise<readonly WalletStatement[]> {
    return this.#ledger.wallets(ids)
  }

  setLimit(wallet: WalletId, limit: { readonly limited: boolean; readonly quota?: bigint }): Promise<void> {
    return this.#ledger.setLimit(wallet, limit)
  }

  check(): Promise<LedgerCheck> {
    return this.#ledger.check()
  }

  /** Gets money for something that does not wait for a lease, such as a video. Never rejects. */
  async supply(
    { account, key, budgets }: Pick<Hold, 'account' | 'key' | 'budgets'>,
    amount: bigint,
  ): Promise<void> {
    const wallets = walletsOf({ account, key, budgets: budgets?.map(({ wallet }) => wallet) })
    const homes = await this.#shares.homesOf(wallets).catch(() => new Map<WalletId, string>())
    const asked = Array.from(homes, ([wallet, home]) =>
      this.#exchanges.get(home)?.demand(wallet, amount, amount),
    )
    await Promise.allSettled(asked)
  }

  #holdUp(changes: readonly LeaseChange[]): void {
    if (changes.length === 0) return
    throw new WalletsHeldUp(new Set(changes.map(({ wallet }) => wallet)), { own: true })
  }

  /** Asks a home for what a call needs. Returns false if it was asked a moment ago, or is away. */
  #ask(home: string, { wallet, change }: LeaseChange): boolean {
    const now = performance.now()
    const last = this.#told.get(wallet)
    if (last && (last.away || last.moved === 0n) && now - last.at < AGAIN_MS) return false
    const exchange = this.#exchanges.get(home)
    if (!exchange || change.kind !== 'take') return false
    this.#asking.add(wallet)
    const note = (told: Omit<Told, 'at'>) => this.#note(wallet, told)
    void exchange
      .demand(wallet, change.need, change.want * TIMES)
      .then(
        (supplied) => note({ away: false, ...(supplied ?? { moved: 0n, elsewhere: UNKNOWN }) }),
        () => note({ away: exchange.away, moved: 0n, elsewhere: last?.elsewhere ?? UNKNOWN }),
      )
      .finally(() => this.#asking.delete(wallet))
    return true
  }

  #note(wallet: WalletId, told: Omit<Told, 'at'>): void {
    if (this.#told.size > MAX_WALLETS) this.#told.clear()
    this.#told.set(wallet, { ...told, at: performance.now() })
  }

  /** Adds what the wallet has in other regions, as leased: what a call is refused for is not spent, but elsewhere. */
  #inAll(wallet: WalletId, state: WalletState): WalletState {
    const told = this.#told.get(wallet)
    const isRecent = told !== undefined && performance.now() - told.at < BELIEVED_MS
    const elsewhere = isRecent ? told.elsewhere : UNKNOWN
    const away = isRecent && told.away
    return {
      ...state,
      funds: state.funds + elsewhere,
      leased: state.leased + elsewhere,
      ...(away && { away }),
    }
  }
}

/** Whether calls wait for what the wallet does not have in this region. */
function lacks({ change }: LeaseChange, { moved, lost, state }: LeaseAnswer): boolean {
  if (change.kind !== 'take' || change.need === 0n || moved > 0n || lost || !state) return false
  return state.funds - state.spent - state.leased < change.need
}

function walletIn({ wallet }: LeaseChange): WalletId {
  return wallet
}
