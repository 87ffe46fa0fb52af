import type { Logger } from '../../core/call/index.ts'
import { BrokenRecord, StoreGuard } from '../../core/store-guard/index.ts'
import type { WalletId } from '../wallet.ts'
import type { HomeStore, PreparedReport, ShareAnswer, ShareRequest, ShareStore } from './region-store.ts'

/** What became of a demand: how much came, and the balance that the wallet has beside the share. */
export interface Supplied {
  readonly moved: bigint
  readonly elsewhere: bigint
}

/** What to move of a share, in nano-units. */
export interface ShareOrder {
  readonly wallet: WalletId
  /** What calls that wait need to be available; 0n if none do. */
  readonly need: bigint
  readonly want: bigint
  readonly give: bigint
}

/** The parts that {@link HomeExchange} works with. */
export interface HomeExchangeOptions {
  /** The name of the home. */
  readonly name: string
  /** The name of the region that asks. */
  readonly region: string
  readonly shares: ShareStore
  readonly home: HomeStore
  readonly logger: Logger
  readonly onChange?: ((away: boolean) => void) | undefined
}

/** A home has not answered after this long, in milliseconds: several round trips around the world, and a new connection. */
const TIMEOUT_MS = 3000
/** Exchanges under way at a time: what is demanded meanwhile goes together. */
const AT_ONCE = 2
const MAX_ORDERS = 500

interface Demand extends ShareOrder {
  resolve(supplied: Supplied | undefined): void
  reject(error: unknown): void
}

/** Moves money between a region and the home of some of its wallets. */
export class HomeExchange {
  /** When the home went away or came back, in milliseconds since the epoch. */
  since = Date.now()
  readonly #options: HomeExchangeOptions
  readonly #guard: StoreGuard
  #demands: Demand[] = []
  #running = 0

  constructor(options: HomeExchangeOptions) {
    this.#options = options
    const { name, logger, onChange } = options
    this.#guard = new StoreGuard({
      name: `region ${name}`,
      logger,
      timeoutMs: TIMEOUT_MS,
      onChange: (away) => {
        this.since = Date.now()
        onChange?.(away)
      },
    })
  }

  get name(): string {
    return this.#options.name
  }

  get away(): boolean {
    return this.#guard.away
  }

  /**
   * Asks the home for something else, under the same time limit.
   *
   * @throws {StoreAway} if it does not answer.
   */
  ask<T>(question: () => Promise<T>): Promise<T> {
    return this.#guard.insist(question)
  }

  /**
   * Gets money for calls that wait.
   *
   * @returns undefined if the wallet is unknown, or locked by somebody else.
   * @throws {StoreAway} if the home does not answer; at once if that is known.
   */
  demand(wallet: WalletId, need: bigint, want: bigint): Promise<Supplied | undefined> {
    return new Promise((resolve, reject) => {
      this.#demands.push({ wallet, need, want, give: 0n, resolve, reject })
      this.#supply()
    })
  }

  /** Carries out orders, and reports what was spent of these shares. Throws as {@link demand} does. */
  async exchange(orders: readonly ShareOrder[]): Promise<ReadonlyMap<WalletId, Supplied>> {
    const { shares, home, region } = this.#options
    const supplied = new Map<WalletId, Supplied>()
    for (let i = 0; i < orders.length; i += MAX_ORDERS) {
      const some = new Map(orders.slice(i, i + MAX_ORDERS).map((order) => [order.wallet, order]))
      const reports = await shares.prepare([...some.values()])
      const requests = reports.map((report) => requestOf(report, some.get(report.wallet)))
      const told = new Map(reports.map((report) => [report.wallet, report]))
      const answers = await this.#guard.insist(() => home.exchange(region, requests, Date.now()))
      const known = answers.flatMap((answer) => {
        const report = told.get(answer.wallet)
        return report ? [{ answer, report }] : []
      })
      await shares.apply(known)
      for (const { answer, report } of known) supplied.set(answer.wallet, suppliedBy(answer, report))
    }
    return supplied
  }

  #supply(): void {
    if (this.#running >= AT_ONCE || this.#demands.length === 0) return
    if (!this.#guard.mayAsk()) {
      const error = new BrokenRecord(`region ${this.name} is away`)
      for (const { reject } of this.#demands.splice(0)) reject(error)
      return
    }
    this.#running++
    void this.#supplyAll(this.#demands.splice(0, MAX_ORDERS))
  }

  async #supplyAll(demands: readonly Demand[]): Promise<void> {
    // Two of one wallet are one.
    const orders = Map.groupBy(demands, ({ wallet }) => wallet)
    try {
      const supplied = await this.exchange(Array.from(orders.values(), together))
      for (const { wallet, resolve } of demands) resolve(supplied.get(wallet))
    } catch (error) {
      for (const { reject } of demands) reject(error)
    }
    this.#running--
    this.#supply()
  }
}

function together(demands: readonly Demand[]): ShareOrder {
  const [{ wallet } = { wallet: '' as WalletId }] = demands
  const sum = (of: (demand: Demand) => bigint) => demands.reduce((all, demand) => all + of(demand), 0n)
  return { wallet, need: sum(({ need }) => need), want: sum(({ want }) => want), give: 0n }
}

/** What is there already, and what was spent beyond it, is no part of what is asked for: home adds the latter itself. */
function requestOf(
  { balance, leased, ...report }: PreparedReport,
  order: ShareOrder | undefined,
): ShareRequest {
  const { need = 0n, want = 0n } = order ?? {}
  const available = (balance > 0n ? balance : 0n) - leased
  const lacking = need > 0n && need > available ? need - available : 0n
  return { ...report, need: lacking, want: want > lacking ? want : lacking }
}

function suppliedBy({ granted, elsewhere }: ShareAnswer, { received }: PreparedReport): Supplied {
  return { moved: granted > received ? granted - received : 0n, elsewhere }
}
