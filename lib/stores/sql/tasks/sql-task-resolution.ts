import type { ChangeOrigin } from '../../../core/change-log/index.ts'
import type { Resolved, TaskResolution } from '../../../endpoints/video/index.ts'
import { KEPT_KEY_MS } from '../../../endpoints/video/tasks/new-task.ts'
import { resolutionChange, resolvedTask } from '../../../endpoints/video/tasks/task-resolution.ts'
import { recordChange } from '../accounts/sql-change-log.ts'
import type { Database } from '../driver/tables.ts'
import { FREE_CLAIMS } from '../ledger/settlement-statements.ts'
import { type TaskRows, toTask } from './sql-task-rows.ts'

/**
 * Ends a task as an operator decides: its money, its Idempotency-Key and the record of the change in one transaction.
 */
export async function resolveTask(
  trx: Database,
  rows: TaskRows,
  id: string,
  resolution: TaskResolution,
  origin: ChangeOrigin,
): Promise<Resolved | undefined> {
  const row = await rows.lock(trx, id)
  if (!row) return undefined
  const before = toTask(row)
  const progress = resolvedTask(before, resolution, origin.at)
  if (typeof progress === 'string') return { kind: progress, task: before }
  const { task, money } = progress
  await rows.settle(trx, progress, origin.at)
  const { claim_id, claim_owner: owner } = row
  if (money === 'charge') {
    await rows.completeClaim(trx, row, origin.at + KEPT_KEY_MS)
    await rows.logCharge(trx, task)
  } else if (claim_id !== null && owner !== null) await FREE_CLAIMS.run(trx, [[claim_id, owner]])
  const over = { poll_at: null, poll_owner: null, answer_by: null, claim_id: null, claim_owner: null }
  await rows.save(trx, task, over)
  await recordChange(trx, resolutionChange(before, task, origin))
  return { kind: 'resolved', task }
}
