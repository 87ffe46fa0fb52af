import type { TaskIntent, VideoTask } from './task.ts'
import { type Progress, progressOf } from './task-progress.ts'
import type { CreatedTask } from './task-store.ts'

/** When a task is polled for the first time, after its create was answered. */
export const FIRST_POLL_MS = 2000

/** How long an Idempotency-Key counts as used where nobody says. */
export const KEPT_KEY_MS = 86_400_000

/** A task as it stands before its create is sent. */
export function intendedTask({ answerBy: _answerBy, claim: _claim, ...intent }: TaskIntent): VideoTask {
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

/** A task that the upstream has taken. Undefined where that is known already, or comes after its end. */
export function takenTask(task: VideoTask, created: CreatedTask, at: number): Progress | undefined {
  if (task.state !== 'intended' && task.state !== 'unresolved') return undefined
  const taken: VideoTask = { ...task, state: 'queued', upstreamId: created.upstreamId, updatedAt: at }
  return progressOf(taken, created.observation, at)
}
