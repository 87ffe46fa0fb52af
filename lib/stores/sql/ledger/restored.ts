import type { RestoredLedger } from '../../../ledger/index.ts'
import { firstIdOf, timeOfId } from '../driver/id-times.ts'
import type { Database } from '../driver/tables.ts'
import { transact } from '../driver/transact.ts'
import { markOf } from '../driver/upkeep-lease.ts'

const NAME = 'restored'
/** Findings of so much later belong to another restore. */
const SAME_MS = 3_600_000
const MOST_KEYS = 1000

/** The findings of a process about a restore. */
interface Found {
  /** When it was found. */
  readonly at: number
  /** Charges that were written again, and their sum in nano-units. */
  readonly charges: number
  readonly amount: bigint
  /** Keys of charges that the database does not know. */
  readonly unknownKeys: readonly string[]
}

/**
 * Notes that the database was restored from a backup, before anything is written again. A note of the same restore that another
 * process has made is added to.
 */
export function noteRestored(db: Database, { at, charges, amount, unknownKeys }: Found): Promise<void> {
  return transact(db, async (trx) => {
    const known = await findRestored(trx)
    const isSame = known !== null && at - known.at < SAME_MS
    const mark = JSON.stringify({
      at: isSame ? known.at : at,
      newestCallAt: isSame ? known.newestCallAt : await newestCall(trx, at),
      charges: charges + (isSame ? known.chargesWrittenAgain : 0),
      amount: String(amount + (isSame ? known.amountWrittenAgain : 0n)),
      unknownKeys: [...new Set([...(isSame ? known.unknownKeys : []), ...unknownKeys])].slice(0, MOST_KEYS),
    })
    await trx
      .insertInto('upkeep')
      .values({ name: NAME, owner: null, until: null, mark })
      .onConflict((conflict) => conflict.column('name').doUpdateSet({ mark }))
      .execute()
  })
}

/** Returns what is noted of the last restore; null if there was none. */
export async function findRestored(db: Database): Promise<RestoredLedger | null> {
  const mark = await markOf(db, NAME)
  if (mark === undefined) return null
  const { at, newestCallAt, charges, amount, unknownKeys } = JSON.parse(mark) as {
    at: number
    newestCallAt: number | null
    charges: number
    amount: string
    unknownKeys: string[]
  }
  return { at, newestCallAt, chargesWrittenAgain: charges, amountWrittenAgain: BigInt(amount), unknownKeys }
}

/** Returns when the newest call began that the database knows; null if it knows none. */
async function newestCall(db: Database, before: number): Promise<number | null> {
  const [call, charge] = [
    await db
      .selectFrom('calls')
      .select('id')
      .where('id', '<', firstIdOf(before))
      .orderBy('id', 'desc')
      .limit(1)
      .executeTakeFirst(),
    await db
      .selectFrom('charges')
      .select('request_id as id')
      .where('request_id', '<', firstIdOf(before))
      .orderBy('request_id', 'desc')
      .limit(1)
      .executeTakeFirst(),
  ]
  const times = [call, charge].flatMap((row) => timeOfId(row?.id ?? '') ?? [])
  return times.length > 0 ? Math.max(...times) : null
}
