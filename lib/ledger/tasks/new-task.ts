import type { TaskIntent, VideoTask } from './task.ts'
import { type Progress, progressOf } from './task-progress.ts'
import type { CreatedTask } from './task-store.ts'

/** The time from the answer to a create until the first poll of its task. */
export const FIRST_POLL_MS = 2000

/** How long an Idempotency-Key counts as used by default. */
export const KEPT_KEY_MS = 86_400_000

/** Returns a task as it is before its create is sent. */
export function intendedTask({
  answerBy: _answerBy,
  claim: _claim,
  budgets: _budgets,
  ...intent
}: TaskIntent): VideoTask {
  return {
    ...intent,
    upstreamId: null,
    state: 'intended',
    usage: { seconds: null, tokens: null },
    charge: null,
    error: null,
    progress: null,
    contentUrl: null,
    missingSince: null,
    updatedAt: intent.createdAt,
    finishedAt: null,
  }
}

/** Returns a task that a line has accepted; undefined if that was recorded before, or the task has ended. */
export function acceptedTask(task: VideoTask, created: CreatedTask, at: number): Progress | undefined {
  if (task.state !== 'intended' && task.state !== 'unresolved') return undefined
  const accepted: VideoTask = { ...task, state: 'queued', upstreamId: created.upstreamId, updatedAt: at }
  return progressOf(accepted, created.observation, at)
}
