import { type Migration, Migrator } from 'kysely/migration'
import { up as accountsKeysCalls } from './migrations/0001-accounts-keys-calls.ts'
import { up as idempotency } from './migrations/0002-idempotency.ts'
import { up as ledger } from './migrations/0003-ledger.ts'
import { up as adminChanges } from './migrations/0004-admin-changes.ts'
import { up as responses } from './migrations/0005-responses.ts'
import { up as videoTasks } from './migrations/0006-video-tasks.ts'
import { up as lineSwitchesTickets } from './migrations/0008-line-switches-tickets.ts'
import { up as failedCalls } from './migrations/0009-failed-calls.ts'
import { up as answers } from './migrations/0011-answers.ts'
import { up as keptThings } from './migrations/0012-kept-things.ts'
import { up as restLifts } from './migrations/0013-rest-lifts.ts'
import { up as keptLists } from './migrations/0014-kept-lists.ts'
import { up as replayedAnswers } from './migrations/0015-replayed-answers.ts'
import type { Database } from './tables.ts'

/** All migrations, in the order of their names. A released migration is never edited: the next change is a new one. */
const MIGRATIONS: Record<string, Migration> = {
  '0001-accounts-keys-calls': { up: accountsKeysCalls },
  '0002-idempotency': { up: idempotency },
  '0003-ledger': { up: ledger },
  '0004-admin-changes': { up: adminChanges },
  '0005-responses': { up: responses },
  '0006-video-tasks': { up: videoTasks },
  '0008-line-switches-tickets': { up: lineSwitchesTickets },
  '0009-failed-calls': { up: failedCalls },
  '0011-answers': { up: answers },
  '0012-kept-things': { up: keptThings },
  '0013-rest-lifts': { up: restLifts },
  '0014-kept-lists': { up: keptLists },
  '0015-replayed-answers': { up: replayedAnswers },
}

/**
 * Migrates a database to the current version. Processes that start at the same time wait for each other; one of them
 * does the work.
 *
 * @throws if a migration fails, or the database is newer than this code. Nothing is changed then.
 */
export async function migrate(db: Database): Promise<void> {
  const migrator = new Migrator({ db, provider: { getMigrations: async () => MIGRATIONS } })
  const { error } = await migrator.migrateToLatest()
  if (error) throw error
}
