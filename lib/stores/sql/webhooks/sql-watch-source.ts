import { sql } from 'kysely'
import type { EndingKey, WatchedBalance, WatchSource } from '../../../management/webhooks/index.ts'
import { checkDatabase } from '../driver/database.ts'
import { firstIdOf } from '../driver/id-times.ts'
import type { Database } from '../driver/tables.ts'

const FIRST = 'account:'
const LOW_AT_A_TIME = 500
/** Of the last deposit of an account. Adjustments have a reason, and are no deposits. */
const THRESHOLD = sql`coalesce((select amount from deposits
  where deposits.account = substr(wallets.id, 9) and reason is null order by at desc limit 1), 0) / 10`

interface BalanceRow {
  readonly id: string
  /** Null without a wallet. */
  readonly balance: bigint | null
  readonly threshold: bigint
}

function toBalance({ id, balance, threshold }: BalanceRow): WatchedBalance {
  return { account: id.slice(FIRST.length), balance: balance ?? 0n, threshold }
}

/**
 * Looks up balances and keys in a database, in time that does not grow with the number of accounts.
 *
 * @example
 * const watch = new WebhookWatch({ outbox, source: new SqlWatchSource(db) })
 */
export class SqlWatchSource implements WatchSource {
  readonly #db: Database
  #lowAfter = FIRST

  constructor(db: Database) {
    checkDatabase('SqlWatchSource', db)
    this.#db = db
  }

  async balances(since: number, limit: number): Promise<readonly WatchedBalance[]> {
    const risen = await this.#risen()
    const at = BigInt(since)
    // An account that spends has leases or ended videos; operators' changes are recorded.
    const { rows } = await sql<BalanceRow>`
      with moved as (
        select wallet as id from leases where ended_at is null
        union select wallet from leases where ended_at > ${at}
        union select 'account:' || account from video_tasks where finished_at > ${at}
        union select 'account:' || subject from admin_changes
          where id > ${firstIdOf(since)} and action like 'account.%'
      ), changed as (
        select wallets.id, funds - spent as balance, coalesce(state, '') = 'low' as low, ${THRESHOLD} as threshold
        from moved join wallets on wallets.id = moved.id
          left join webhook_states on webhook_states.subject = wallets.id
        where wallets.id like 'account:%' and limited = 1
      )
      select id, balance, threshold from changed where (balance < threshold) <> low limit ${limit}`.execute(
      this.#db,
    )
    return [...rows, ...risen].slice(0, limit).map(toBalance)
  }

  /** Reads the next accounts that were reported as low: their rise was missed if no process looked for long. */
  async #risen(): Promise<readonly BalanceRow[]> {
    const { rows } = await sql<BalanceRow>`
      select watched.subject as id, funds - spent as balance, ${THRESHOLD} as threshold
      from (select subject from webhook_states
          where state = 'low' and subject > ${this.#lowAfter} and subject < 'account;'
          order by subject limit ${LOW_AT_A_TIME}) as watched
        left join wallets on wallets.id = watched.subject
      order by watched.subject`.execute(this.#db)
    this.#lowAfter = rows.length < LOW_AT_A_TIME ? FIRST : (rows.at(-1)?.id ?? FIRST)
    return rows.filter(({ balance, threshold }) => balance !== null && balance >= threshold)
  }

  async endingKeys(from: number, until: number, limit: number): Promise<readonly EndingKey[]> {
    const { rows } = await sql<{ id: string; account: string; expires_at: bigint }>`
      select id, account, expires_at from keys
      where expires_at > ${BigInt(from)} and expires_at <= ${BigInt(until)} and enabled = 1
        and not exists (
          select 1 from webhook_states
          where subject = 'key:' || keys.id and state = cast(keys.expires_at as text)
        )
      order by expires_at limit ${limit}`.execute(this.#db)
    return rows.map(({ id, account, expires_at }) => ({ key: id, account, expiresAt: Number(expires_at) }))
  }
}
