import type { LeaseAnswer, LeaseChange, OpenLease } from '../../../ledger/index.ts'
import { changeLease, ENDED_KEPT_MS, sweepLease } from '../../../ledger/lease.ts'
import { isPostgres } from '../driver/is-postgres.ts'
import { RowStatement } from '../driver/row-statement.ts'
import type { Database } from '../driver/tables.ts'
import { type LockedWallet, lockLeases, lockWallets, saveLeases, saveWallets } from './sql-ledger-rows.ts'

const CHUNK_LEASES = 1000
/** Most ended leases deleted at a time. */
const MAX_DELETED = 1000
const FORGET_EVERY_MS = 60_000

const RENEW = RowStatement.update<{ id: string }>(
  'leases',
  { id: 'text', at: 'bigint' },
  'beats = found.beats + 1, renewed_at = given.at',
  'found.id = given.id and found.ended_at is null',
  'id',
)

/** Takes, returns, renews and sweeps the leases of processes. */
export class Leasing {
  #forgotAt = Number.NEGATIVE_INFINITY

  async change(trx: Database, owner: string, changes: readonly LeaseChange[]): Promise<LeaseAnswer[]> {
    const wallets = await lockWallets(
      trx,
      changes.map(({ wallet }) => wallet),
    )
    const leases = await lockLeases(
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
    await saveLeases(
      trx,
      [...leases.values()].filter(({ id }) => changedLeases.has(id)),
    )
    await saveWallets(trx, changedWallets)
    return answers
  }

  async renew(db: Database, leases: readonly string[], at: number): Promise<Set<string>> {
    await this.#forgetEnded(db)
    const kept = new Set<string>()
    const ids = [...new Set(leases)]
    for (let i = 0; i < ids.length; i += CHUNK_LEASES) {
      const { rows } = await RENEW.run(
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
    const wallets = await lockWallets(trx, [found.wallet])
    const leases = await lockLeases(trx, [id])
    const [wallet, lease] = [wallets.get(found.wallet), leases.get(id)]
    if (!wallet || lease?.beats !== beats) return false
    if (lease.ended) return lease.ended === 'swept'
    sweepLease(wallet, lease, Date.now())
    await saveLeases(trx, [lease])
    await saveWallets(trx, [wallet])
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
      .limit(MAX_DELETED)
    if (isPostgres(db)) ended = ended.forUpdate().skipLocked()
    await db.deleteFrom('leases').where('id', 'in', ended).execute()
  }
}
