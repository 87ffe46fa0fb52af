import {
  ownResource,
  type ResourceName,
  type ResourcePage,
  type ResourceStore,
  type UpstreamResource,
} from '../../../core/upstream-resources/index.ts'
import { toBigint, toNumber } from '../driver/columns.ts'
import { checkDatabase, isPostgres } from '../driver/database.ts'
import { Groups } from '../driver/groups.ts'
import { lockFreeRows } from '../driver/row-locks.ts'
import type { Database, UpstreamResourcesTable } from '../driver/tables.ts'
import { transact } from '../driver/transact.ts'

type Write = (db: Database) => Promise<unknown>

/**
 * A store of kept things in a database, for all processes that share it.
 *
 * @example
 * const resources = new UpstreamResources({ store: new SqlResourceStore(await openDatabase('sqlite:.data/gateway.db')) })
 */
export class SqlResourceStore implements ResourceStore {
  readonly #db: Database
  readonly #writes: Groups<Write, unknown>

  constructor(db: Database) {
    checkDatabase('SqlResourceStore', db)
    this.#db = db
    // SQLite has one writer at a time, so that writes which wait share a commit. Postgres groups commits itself.
    this.#writes = new Groups({
      atOnce: isPostgres(db) ? Number.POSITIVE_INFINITY : 1,
      ask: (writes) => (writes.length === 1 ? all(writes, db) : transact(db, (trx) => all(writes, trx))),
    })
  }

  async remember(resources: readonly UpstreamResource[]): Promise<void> {
    const rows = rowsOf(resources)
    if (rows.length === 0) return
    await this.#writes.run((db) =>
      db
        .insertInto('upstream_resources')
        .values(rows)
        .onConflict((conflict) =>
          conflict.columns(['kind', 'id', 'account']).doUpdateSet(({ ref }) => ({
            key: ref('excluded.key'),
            line: ref('excluded.line'),
            model: ref('excluded.model'),
            tokens: ref('excluded.tokens'),
            expires_at: ref('excluded.expires_at'),
          })),
        )
        .execute(),
    )
  }

  async find(account: string, names: readonly ResourceName[]): Promise<UpstreamResource[]> {
    const idsByKind = Map.groupBy(names, ({ kind }) => kind)
    const found: UpstreamResource[] = []
    for (const [kind, named] of idsByKind) {
      const ids = new Set(named.map(({ id }) => id))
      const rows = await this.#db
        .selectFrom('upstream_resources')
        .selectAll()
        .where('kind', '=', kind)
        .where('id', 'in', [...ids])
        .execute()
      for (const records of Map.groupBy(rows.map(resourceOf), ({ id }) => id).values()) {
        const own = ownResource(records, account)
        if (own) found.push(own)
      }
    }
    return found
  }

  async list(account: string, kind: string, page: ResourcePage): Promise<UpstreamResource[]> {
    const { lines, order, after, aliveAt, limit } = page
    if (lines.length === 0) return []
    const newest = order === 'newest'
    let resources = this.#db
      .selectFrom('upstream_resources as own')
      .selectAll('own')
      .where('own.account', '=', account)
      .where('own.kind', '=', kind)
      .where('own.line', 'in', [...lines])
      .where(({ eb, or }) =>
        or([eb('own.expires_at', 'is', null), eb('own.expires_at', '>', BigInt(aliveAt))]),
      )
      .where(({ not, exists, selectFrom }) =>
        not(
          exists(
            selectFrom('upstream_resources as other')
              .select('other.id')
              .whereRef('other.kind', '=', 'own.kind')
              .whereRef('other.id', '=', 'own.id')
              .whereRef('other.account', '<>', 'own.account')
              .whereRef('other.line', '=', 'own.line'),
          ),
        ),
      )
      .orderBy('own.created_at', newest ? 'desc' : 'asc')
      .orderBy('own.id', newest ? 'desc' : 'asc')
      .limit(limit)
    if (after) {
      const place = [BigInt(after.createdAt), after.id] as const
      resources = resources.where(({ eb, refTuple, tuple }) =>
        eb(refTuple('own.created_at', 'own.id'), newest ? '<' : '>', tuple(...place)),
      )
    }
    return (await resources.execute()).map(resourceOf)
  }

  async forget(account: string, { kind, id }: ResourceName): Promise<void> {
    await this.#writes.run((db) =>
      db
        .deleteFrom('upstream_resources')
        .where('kind', '=', kind)
        .where('id', '=', id)
        .where('account', '=', account)
        .execute(),
    )
  }

  async prune(before: number, limit: number): Promise<number> {
    const oldest = this.#db
      .selectFrom('upstream_resources')
      .select(['kind', 'id', 'account'])
      .where('expires_at', '<', BigInt(before))
      .orderBy('expires_at')
      .limit(limit)
    const { numDeletedRows } = await this.#db
      .with('free', () => lockFreeRows(this.#db, oldest))
      .deleteFrom('upstream_resources')
      .where(({ eb, refTuple, selectFrom }) =>
        eb(
          refTuple('kind', 'id', 'account'),
          'in',
          selectFrom('free').select(['kind', 'id', 'account']).$asTuple('kind', 'id', 'account'),
        ),
      )
      .executeTakeFirst()
    return Number(numDeletedRows)
  }
}

/** Returns the rows in the order in which they are locked, each name once: an insert may not meet a row twice. */
function rowsOf(resources: readonly UpstreamResource[]): UpstreamResourcesTable[] {
  const byName = new Map(
    resources.map((resource) => [`${resource.kind} ${resource.id} ${resource.account}`, resource]),
  )
  return [...byName]
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([, { tokens, createdAt, expiresAt, ...resource }]) => ({
      ...resource,
      tokens: BigInt(tokens),
      created_at: BigInt(createdAt),
      expires_at: toBigint(expiresAt),
    }))
}

function resourceOf({ tokens, created_at, expires_at, ...row }: UpstreamResourcesTable): UpstreamResource {
  return {
    ...row,
    tokens: Number(tokens),
    createdAt: Number(created_at),
    expiresAt: toNumber(expires_at),
  }
}

function all(writes: readonly Write[], db: Database): Promise<unknown[]> {
  return Promise.all(writes.map((write) => write(db)))
}
