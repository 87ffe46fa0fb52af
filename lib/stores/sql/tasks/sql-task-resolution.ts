import type { ChangeOrigin } from '../../../core/change-log/index.ts'
import type { Resolved, TaskResolution } from '../../../endpoints/video/index.ts'
import { KEPT_KEY_MS } from '../../../endpoints/video/tasks/new-task.ts'
import { resolutionChange, resolvedTask } from '../../../endpoints/video/tasks/task-resolution.ts'
import { changeWrite } from '../accounts/sql-change-log.ts'
import { UsageTally } from '../usage/usage-tally.ts'
import { type TaskRows, toTask } from './sql-task-rows.ts'

/**
 * Ends a task as an operator decides: its money, its Idempotency-Key and the record of the change in one transaction.
 */
export function resolveTask(
  rows: TaskRows,
  id: string,
  resolution: TaskResolution,
  origin: ChangeOrigin,
): Promise<Resolved | undefined> {
  return rows.revise<Resolved>(id, async (found) => {
    const before = toTask(found.row)
    const progress = resolvedTask(before, resolution, origin.at)
    if (typeof progress === 'string') return { writes: [], result: { kind: progress, task: before } }
    const { task, money } = progress
    const usage = new UsageTally()
    const over = { poll_at: null, poll_owner: null, answer_by: null, claim_id: null, claim_owner: null }
    const writes = [
      rows.save(found, task, over),
      ...rows.settle(found, progress, origin.at, usage),
      ...(money === 'charge'
        ? [rows.completeClaim(found, origin.at + KEPT_KEY_MS), ...(await rows.logCharge(task))]
        : [rows.freeClaim(found)]),
      changeWrite(resolutionChange(before, task, origin)),
      usage.write(),
    ]
    return { writes, result: { kind: 'resolved', task } }
  })
}
