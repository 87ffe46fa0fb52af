import type { DatabaseSync, StatementSync } from 'node:sqlite'
import type { IdempotencyClaim } from '../../../core/call/index.ts'
import type { CallsTable } from '../driver/tables.ts'

/** What is written with a call's charge: its Idempotency-Key and its log entry. */
export class SqliteRecords {
  readonly #complete: StatementSync
  readonly #free: StatementSync
  readonly #log: StatementSync

  constructor(db: DatabaseSync) {
    this.#complete = db.prepare(
      `update idempotency set state = 'completed', expires_at = ? where id = ? and owner = ?`,
    )
    this.#free = db.prepare('delete from idempotency where id = ? and owner = ?')
    this.#log = db.prepare(
      `insert into calls (id, account, key, model, status, error_code, created_at, entry, response_body)
      values (?, ?, ?, ?, ?, ?, ?, ?, ?)
      on conflict (id) do update set account = excluded.account, key = excluded.key, model = excluded.model,
        status = excluded.status, error_code = excluded.error_code, created_at = excluded.created_at,
        entry = excluded.entry, response_body = excluded.response_body`,
    )
  }

  /** Completes a record; false where it is not its owner's any more. */
  complete({ id, owner, keepUntil }: IdempotencyClaim & { readonly keepUntil: number }): boolean {
    return this.#complete.run(keepUntil, id, owner).changes !== 0
  }

  /** Frees a record that is still its owner's, completed or not. */
  free({ id, owner }: IdempotencyClaim): void {
    this.#free.run(id, owner)
  }

  /** Writes a log entry, in the place of an earlier one: what settles a call last knows best what became of it. */
  log({ id, account, key, model, status, error_code, created_at, entry, response_body }: CallsTable): void {
    this.#log.run(id, account, key, model, status, error_code, created_at, entry, response_body)
  }
}
