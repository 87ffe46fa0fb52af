import type { IdempotencyClaim } from '../../../core/call/index.ts'
import type { ClaimRequest, IdempotencyRecord } from '../../../middleware/idempotency/index.ts'
import { Groups } from '../driver/groups.ts'
import { isLocked } from '../driver/postgres/lock-timeout.ts'
import { connectionsOf } from '../driver/postgres/postgres-dialect.ts'
import type { RowStatement } from '../driver/row-statement.ts'
import type { Database } from '../driver/tables.ts'
import { busyIfLocked, findRecord, toRecord } from './claim-records.ts'
import { COMPLETE, RELEASE, TAKE, type TakenOne, type TakenRow, takeOrFindQuery } from './claim-statements.ts'

/** More groups at a time would hardly shorten a wait, and others need connections too. */
const MAX_AT_ONCE = 6

/** Those of one key in a group. Only the first is asked for. */
type SameKey = readonly ClaimRequest[]

/**
 * What has become of a claim: it was made, or another record stands. `again`: another one was made meanwhile. `locked`: it has
 * run out, and somebody else has locked it, such as to take it over.
 */
type Claimed = IdempotencyRecord | 'taken' | 'again' | 'locked'

interface Completion extends IdempotencyClaim {
  readonly keepUntil: number
  readonly answer: string | null
}

/**
 * The operations on records in Postgres that many calls want at the same time, many in a statement: the database may be
 * far away. None waits for a record that somebody else has locked.
 */
export class ClaimGroups {
  readonly #takeOne: (request: ClaimRequest) => Promise<Claimed>
  readonly #claims: Groups<ClaimRequest, Claimed>
  readonly #completions: Groups<Completion, boolean>
  readonly #releases: Groups<IdempotencyClaim, boolean>

  constructor(db: Database) {
    this.#takeOne = takingOne(db)
    const atOnce = Math.min(MAX_AT_ONCE, Math.max(1, connectionsOf(db).size - 1))
    this.#claims = new Groups({ atOnce, ask: (group) => this.#take(db, group) })
    this.#completions = new Groups({
      atOnce,
      ask: (group) =>
        doneOf(
          db,
          COMPLETE,
          group.map(({ id, owner, keepUntil, answer }) => [id, owner, keepUntil, answer]),
        ),
    })
    this.#releases = new Groups({
      atOnce,
      ask: (group) =>
        doneOf(
          db,
          RELEASE,
          group.map(({ id, owner }) => [id, owner]),
        ),
    })
  }

  /** Takes a record, and returns undefined, or the one that stands. */
  async claim(request: ClaimRequest): Promise<IdempotencyRecord | undefined> {
    for (;;) {
      let claimed = await this.#claims.run(request)
      if (claimed === 'locked') claimed = await this.#takeOne(request)
      if (claimed !== 'again' && claimed !== 'locked') return claimed === 'taken' ? undefined : claimed
    }
  }

  async #take(db: Database, group: readonly ClaimRequest[]): Promise<Claimed[]> {
    const [only, ...others] = group
    if (only && others.length === 0) return [await this.#takeOne(only)]
    const byKey = Map.groupBy(group, ({ id }) => id)
    const rows = Array.from(byKey.values(), ([first]) => {
      const { id, owner, fingerprint, now, leaseUntil } = first as ClaimRequest
      return [id, owner, fingerprint, leaseUntil, now]
    })
    const found = new Map((await TAKE.run(db, rows)).rows.map((row) => [row.id, row]))
    return group.map((request) => claimedOf(request, byKey.get(request.id) ?? [], found.get(request.id)))
  }

  /** Returns whether it was done; false also if somebody else has locked the record. */
  complete(claim: IdempotencyClaim, keepUntil: number, answer: string | null): Promise<boolean> {
    return this.#completions.run({ id: claim.id, owner: claim.owner, keepUntil, answer })
  }

  /** Returns whether it was done; false also if somebody else has locked the record. */
  release(claim: IdempotencyClaim): Promise<boolean> {
    return this.#releases.run(claim)
  }
}

/** Returns what a claim found, where the first of its key was asked for. */
function claimedOf(request: ClaimRequest, [first]: SameKey, row: TakenRow | undefined): Claimed {
  if (!row) return 'again'
  const isFirst = first?.owner === request.owner
  if (row.taken) return isFirst ? 'taken' : 'again'
  if (row.owner === null) return 'again'
  const standing = toRecord(row as TakenRow & { owner: string })
  const isOwn = standing.owner === request.owner && standing.state === 'running'
  if (standing.expiresAt > request.now && !isOwn) return standing
  return row.locked && isFirst ? 'locked' : 'again'
}

/**
 * Returns how to take a record by itself, which takes Postgres the least time. That waits for a record that somebody else has
 * locked. One that stays locked counts as running, unless it is known to have run.
 */
function takingOne(db: Database) {
  const query = takeOrFindQuery(db).compile(db)
  return async (request: ClaimRequest): Promise<Claimed> => {
    const { id, owner, fingerprint, now, leaseUntil } = request
    const parameters = [id, owner, fingerprint, 'running', BigInt(leaseUntil), BigInt(now), id]
    try {
      const [row] = (await db.executeQuery<TakenOne>({ ...query, parameters })).rows
      const taken = row !== undefined && row.taken !== null
      return claimedOf(request, [request], row && { ...row, id, taken, locked: false })
    } catch (error) {
      const standing = isLocked(error) && (await findRecord(db, id))
      if (!standing) return busyIfLocked(error)
      return standing.expiresAt > now ? standing : { ...standing, state: 'running' }
    }
  }
}

async function doneOf(
  db: Database,
  statement: RowStatement<{ id: string; owner: string }>,
  rows: readonly (readonly (string | number | null)[])[],
): Promise<boolean[]> {
  const done = new Set((await statement.run(db, rows)).rows.map(({ id, owner }) => `${id} ${owner}`))
  return rows.map(([id, owner]) => done.has(`${id} ${owner}`))
}
