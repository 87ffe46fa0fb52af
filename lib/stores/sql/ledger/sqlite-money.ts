import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { assertFigure } from '../../../ledger/amounts.ts'
import type { Draw, WalletId } from '../../../ledger/index.ts'
import { drawLease } from '../../../ledger/lease.ts'
import { accountWallet, keyWallet } from '../../../ledger/wallet.ts'

/** Those figures of a wallet that settlements change. */
interface Figures {
  spent: bigint
  leased: bigint
  overrun: bigint
}

interface Lease {
  readonly wallet: WalletId
  held: bigint
}

/** Wallets and leases of one batch: each is read once and saved once, however many of its calls spend from it. */
export class SqliteMoney {
  readonly #findWallet: StatementSync
  readonly #openWallet: StatementSync
  readonly #saveWallet: StatementSync
  readonly #findLease: StatementSync
  readonly #saveLease: StatementSync
  readonly #wallets = new Map<WalletId, Figures | undefined>()
  readonly #leases = new Map<string, Lease | undefined>()

  constructor(db: DatabaseSync) {
    this.#findWallet = db.prepare('select spent, leased, overrun from wallets where id = ?')
    this.#findWallet.setReadBigInts(true)
    this.#openWallet = db.prepare(
      'insert into wallets (id, limited, funds, spent, leased, overrun) values (?, 0, 0, 0, 0, 0)',
    )
    this.#saveWallet = db.prepare('update wallets set spent = ?, leased = ?, overrun = ? where id = ?')
    this.#findLease = db.prepare('select wallet, held from leases where id = ?')
    this.#findLease.setReadBigInts(true)
    this.#saveLease = db.prepare('update leases set held = ? where id = ?')
  }

  /** Forgets what was read for another batch: it may have failed, and other processes write too. */
  begin(): void {
    this.#wallets.clear()
    this.#leases.clear()
  }

  /** Spends from the wallets of account and key. Those that are not there are opened. */
  spend({ account, key }: { readonly account: string; readonly key: string | null }, amount: bigint): void {
    this.#opened(accountWallet(account)).spent += amount
    if (key !== null) this.#opened(keyWallet(key)).spent += amount
  }

  /** Takes what a charge was held for out of its leases. */
  draw(draws: readonly Draw[]): void {
    for (const draw of draws) {
      const wallet = this.#wallet(draw.wallet)
      if (wallet) drawLease(wallet, this.#lease(draw.lease), draw)
    }
  }

  /** @throws RangeError when a figure has grown beyond what the database holds. */
  save(): void {
    for (const [id, lease] of this.#leases) if (lease) this.#saveLease.run(lease.held, id)
    for (const [id, wallet] of this.#wallets) {
      if (!wallet) continue
      this.#saveWallet.run(
        assertFigure(wallet.spent, `spent of "${id}"`),
        assertFigure(wallet.leased, `leased of "${id}"`),
        assertFigure(wallet.overrun, `overrun of "${id}"`),
        id,
      )
    }
  }

  #opened(id: WalletId): Figures {
    const known = this.#wallet(id)
    if (known) return known
    this.#openWallet.run(id)
    const opened = { spent: 0n, leased: 0n, overrun: 0n }
    this.#wallets.set(id, opened)
    return opened
  }

  #wallet(id: WalletId): Figures | undefined {
    const known = this.#wallets.get(id)
    if (known || this.#wallets.has(id)) return known
    const row = this.#findWallet.get(id) as Figures | undefined
    const found = row && { spent: row.spent, leased: row.leased, overrun: row.overrun }
    this.#wallets.set(id, found)
    return found
  }

  #lease(id: string): Lease | undefined {
    const known = this.#leases.get(id)
    if (known || this.#leases.has(id)) return known
    const row = this.#findLease.get(id) as Lease | undefined
    const found = row && { wallet: row.wallet, held: row.held }
    this.#leases.set(id, found)
    return found
  }
}
