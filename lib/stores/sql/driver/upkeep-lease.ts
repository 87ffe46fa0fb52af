import { randomUUID } from 'node:crypto'
import { sql } from 'kysely'
import type { Database } from './tables.ts'

/** How long a process that stopped holds up the others. */
const HELD_MS = 120_000
const RENEWED_AFTER_MS = 20_000

/** Thrown if another process does the work by now. */
export class UpkeepLost extends Error {
  override readonly name = 'UpkeepLost'
}

/** The right of one process at a time to do some work on the tables. Several processes may ask for it. */
export class UpkeepLease {
  readonly #db: Database
  readonly #name: string
  readonly #owner: string = randomUUID()
  #renewedAt = 0

  constructor(db: Database, name: string) {
    this.#db = db
    this.#name = name
  }

  /**
   * Returns whether this process may do the work now. A right that seems longer than any is was taken before the clock was set
   * back.
   */
  async take(): Promise<boolean> {
    const [now, at] = [Date.now(), performance.now()]
    const until = BigInt(now + HELD_MS)
    const { rows } =
      await sql`insert into upkeep (name, owner, until) values (${this.#name}, ${this.#owner}, ${until})
      on conflict (name) do update set owner = excluded.owner, until = excluded.until
        where upkeep.owner is null or upkeep.owner = excluded.owner or upkeep.until < ${BigInt(now)}
          or upkeep.until > ${BigInt(now + 2 * HELD_MS)}
      returning name`.execute(this.#db)
    if (rows.length > 0) this.#renewedAt = at
    return rows.length > 0
  }

  /**
   * Keeps the right.
   *
   * @param now whether to ask although it was asked a moment ago.
   * @throws {UpkeepLost}
   */
  async keep(now = false): Promise<void> {
    if (!now && performance.now() - this.#renewedAt < RENEWED_AFTER_MS) return
    const { numUpdatedRows } = await this.#db
      .updateTable('upkeep')
      .set({ until: BigInt(Date.now() + HELD_MS) })
      .where('name', '=', this.#name)
      .where('owner', '=', this.#owner)
      .executeTakeFirst()
    if (numUpdatedRows === 0n) throw new UpkeepLost('another process goes on with it')
    this.#renewedAt = performance.now()
  }

  /** Keeps the right while something goes on that takes longer than a page. */
  async during<T>(work: Promise<T>): Promise<T> {
    const timer = setInterval(() => void this.keep(true).catch(() => {}), RENEWED_AFTER_MS)
    try {
      return await work
    } finally {
      clearInterval(timer)
    }
  }

  /**
   * Notes how far some work has come.
   *
   * @throws {UpkeepLost}
   */
  async saveMark(name: string, mark: string): Promise<void> {
    const own = this.#db
      .selectFrom('upkeep')
      .select('name')
      .where('name', '=', this.#name)
      .where('owner', '=', this.#owner)
    await this.#db
      .insertInto('upkeep')
      .values({ name, mark: null, owner: null, until: null })
      .onConflict((conflict) => conflict.column('name').doNothing())
      .execute()
    const { numUpdatedRows } = await this.#db
      .updateTable('upkeep')
      .set({ mark })
      .where('name', '=', name)
      .where(({ or, eb }) => or([eb('mark', 'is', null), eb('mark', '<', mark)]))
      .where(({ exists }) => exists(own))
      .executeTakeFirst()
    if (numUpdatedRows === 0n) throw new UpkeepLost('another process goes on with it')
  }

  /** Lets others go on with it at once. */
  async free(): Promise<void> {
    await this.#db
      .updateTable('upkeep')
      .set({ owner: null })
      .where('name', '=', this.#name)
      .where('owner', '=', this.#owner)
      .execute()
  }
}

/** Returns how far some work has come; undefined if it has not begun. */
export async function markOf(db: Database, name: string): Promise<string | undefined> {
  const row = await db.selectFrom('upkeep').select('mark').where('name', '=', name).executeTakeFirst()
  return row?.mark ?? undefined
}
