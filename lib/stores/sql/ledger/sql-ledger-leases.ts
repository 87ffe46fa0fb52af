import { sql } from 'kysely'
import type { LeaseAnswer, LeaseChange, OpenLease } from '../../../ledger/index.ts'
import { changeLease, ENDED_KEPT_MS, sweepLease } from '../../../ledger/lease.ts'
import { isPostgres } from '../driver/is-postgres.ts'
import { RowStatement } from '../driver/row-statement.ts'
import type { Database } from '../driver/tables.ts'
import type { LeaseRows, LockedWallet, WalletRows } from './sql-ledger-rows.ts'

const CHUNK_LEASES = 1000
/** Most ended leases forgotten at a time. */
const MOST_FORGOTTEN = 1000
const FORGET_EVERY_MS = 60_000

/** What processes hold of wallets: taken, given back, kept alive, swept. */
export class Leasing {
  readonly #wallets: WalletRows
  readonly #leases: LeaseRows
  readonly #renew: RowStatement<{ id: string }>
  #forgotAt = Number.NEGATIVE_INFINITY

  constructor(db: Database, wallets: WalletRows, leases: LeaseRows) {
    this.#wallets = wallets
    this.#leases = leases
    this.#renew = new RowStatement(
      db,
      { id: 'text', at: 'bigint' },
      sql`
      update leases set beats = leases.beats + 1, renewed_at = kept.at
      from (
        select lease.id, given.at from given join leases as lease on lease.id = given.id
        where lease.ended_at is null ${isPostgres(db) ? sql`order by lease.id for update of lease` : sql``}
      ) as kept
      where leases.id = kept.id returning leases.id`,
    )
  }

  async change(trx: Database, owner: string, changes: readonly LeaseChange[]): Promise<LeaseAnswer[]> {
    const wallets = await this.#wallets.lock(
      trx,
      changes.map(({ wallet }) => wallet),
    )
    const leases = await this.#leases.lock(
      trx,
      changes.map(({ lease }) => lease),
    )
    const now = Date.now()
    const changedWallets = new Set<LockedWallet>()
    const changedLeases = new Set<string>()
    const answers = changes.map((change) => {
      const wallet = wallets.get(change.wallet)
      const { answer, lease } = changeLease(wallet, leases.get(change.lease), { ...change, owner }, now)
      if (wallet && lease) {
        leases.set(lease.id, lease)
        changedLeases.add(lease.id)
        changedWallets.add(wallet)
      }
      return answer
    })
    await this.#leases.save(
      trx,
      [...leases.values()].filter(({ id }) => changedLeases.has(id)),
    )
    await this.#wallets.save(trx, changedWallets)
    return answers
  }

  async renew(db: Database, leases: readonly string[], at: number): Promise<Set<string>> {
    await this.#forgetEnded(db)
    const kept = new Set<string>()
    const ids = [...new Set(leases)]
    for (let i = 0; i < ids.length; i += CHUNK_LEASES) {
      const rows = await this.#renew.run(
        db,
        ids.slice(i, i + CHUNK_LEASES).map((id) => [id, at]),
      )
      for (const { id } of rows) kept.add(id)
    }
    return kept
  }

  async list(db: Database): Promise<OpenLease[]> {
    const rows = await db
      .selectFrom('leases')
      .select(['id', 'wallet', 'owner', 'held', 'beats', 'renewed_at'])
      .where('ended_at', 'is', null)
      .orderBy('id')
      .execute()
    return rows.map(({ renewed_at, ...lease }) => ({ ...lease, renewedAt: Number(renewed_at) }))
  }

  async sweep(trx: Database, id: string, beats: number): Promise<boolean> {
    const found = await trx.selectFrom('leases').select('wallet').where('id', '=', id).executeTakeFirst()
    if (!found) return false
    const wallets = await this.#wallets.lock(trx, [found.wallet])
    const leases = await this.#leases.lock(trx, [id])
    const [wallet, lease] = [wallets.get(found.wallet), leases.get(id)]
    if (!wallet || lease?.beats !== beats) return false
    if (lease.ended) return lease.ended === 'swept'
    sweepLease(wallet, lease, Date.now())
    await this.#leases.save(trx, [lease])
    await this.#wallets.save(trx, [wallet])
    return true
  }

  async #forgetEnded(db: Database): Promise<void> {
    const now = Date.now()
    if (now - this.#forgotAt < FORGET_EVERY_MS) return
    this.#forgotAt = now
    let ended = db
      .selectFrom('leases')
      .select('id')
      .where('ended_at', '<', BigInt(now - ENDED_KEPT_MS))
      .limit(MOST_FORGOTTEN)
    if (isPostgres(db)) ended = ended.forUpdate().skipLocked()
    await db.deleteFrom('leases').where('id', 'in', ended).execute()
  }
}
