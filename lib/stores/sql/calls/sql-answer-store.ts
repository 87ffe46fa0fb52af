import type { AnswerStore } from '../../../core/idempotency/index.ts'
import { checkDatabase, isPostgres } from '../driver/database.ts'
import { lockFreeRows } from '../driver/row-locks.ts'
import type { Database } from '../driver/tables.ts'

/** Parts deleted by one statement: freeing them takes SQLite about as long as writing them. */
const DELETED_AT_ONCE = 8

/**
 * Keeps the answers of calls with an Idempotency-Key, for `idempotency`. `SqlCallStore` reads them, and deletes them with
 * their entries.
 *
 * With SQLite, give it the handle of the ledger: that writes one thing at a time, and a part is short. With Postgres, give it
 * a handle of its own.
 *
 * @example
 * const answers = new SqlAnswerStore(await openDatabase(url, { poolSize: 2 }))
 * app.use(idempotency({ store: new SqlIdempotencyStore(db), answers }))
 */
export class SqlAnswerStore implements AnswerStore {
  readonly partBytes: number
  readonly #db: Database

  constructor(db: Database) {
    checkDatabase('SqlAnswerStore', db)
    this.#db = db
    // A round trip for each part; SQLite has but one writer, for which others wait.
    this.partBytes = isPostgres(db) ? 1024 * 1024 : 128 * 1024
  }

  async write(id: string, part: number, bytes: Uint8Array): Promise<void> {
    await this.#db
      .insertInto('answers')
      .values({ id, part, bytes })
      .onConflict((conflict) => conflict.columns(['id', 'part']).doNothing())
      .execute()
  }

  async drop(id: string): Promise<void> {
    // The least text behind the id, but for one with U+0000 in it, which no id has.
    await deleteAnswers(this.#db, id, `${id}\u0001`)
  }
}

/** Reads an answer part by part, so that a large one delays no others; null if it is not there whole. */
export async function readAnswer(db: Database, id: string, parts: number): Promise<string | null> {
  const read: Uint8Array[] = []
  for (let part = 0; part < parts; part++) {
    const row = await db
      .selectFrom('answers')
      .select('bytes')
      .where('id', '=', id)
      .where('part', '=', part)
      .executeTakeFirst()
    if (!row) return null
    read.push(row.bytes)
  }
  return Buffer.concat(read).toString()
}

/** Deletes the answers with ids in a range, the end excluded, a few parts at a time. */
export async function deleteAnswers(db: Database, from: string, to: string): Promise<void> {
  await deleteWhile(db, partsOf(db, from, to))
}

/** Deletes the answers with ids in a range that no entry points at: their calls ended with the process. */
export async function deleteOrphans(db: Database, from: string, to: string): Promise<void> {
  const orphans = partsOf(db, from, to).where(({ not, exists, selectFrom }) =>
    not(exists(selectFrom('calls').select('calls.id').whereRef('calls.id', '=', 'answers.id'))),
  )
  await deleteWhile(db, orphans)
}

function partsOf(db: Database, from: string, to: string) {
  return db
    .selectFrom('answers')
    .select(['answers.id', 'part'])
    .where('answers.id', '>=', from)
    .where('answers.id', '<', to)
    .orderBy('answers.id')
    .orderBy('part')
}

async function deleteWhile(db: Database, parts: ReturnType<typeof partsOf>): Promise<void> {
  for (;;) {
    const { numDeletedRows } = await db
      .with('free', () => lockFreeRows(db, parts.limit(DELETED_AT_ONCE)))
      .deleteFrom('answers')
      .where(({ eb, refTuple, selectFrom }) =>
        eb(refTuple('id', 'part'), 'in', selectFrom('free').select(['id', 'part']).$asTuple('id', 'part')),
      )
      .executeTakeFirst()
    if (numDeletedRows < BigInt(DELETED_AT_ONCE)) return
  }
}
