import { fittingRows } from '../../../core/json-api/index.ts'
import type { TaskState, VideoTask } from '../../../ledger/tasks/task.ts'

/** The status of each state. The protocol has one status for all videos that were not made. */
const STATUS: Readonly<Record<TaskState, string>> = {
  intended: 'queued',
  unresolved: 'queued',
  queued: 'queued',
  running: 'in_progress',
  succeeded: 'completed',
  failed: 'failed',
  cancelled: 'failed',
  expired: 'failed',
}

const CANCELLED = { code: 'cancelled', message: 'The video was cancelled before it was begun.' }

/** Returns a task in the OpenAI-style protocol. Prompts are not stored. */
export function toVideo(task: VideoTask): object {
  const { facts, finishedAt } = task
  return {
    id: task.id,
    object: 'video',
    model: task.model,
    status: STATUS[task.state],
    progress: task.state === 'succeeded' ? 100 : Math.round(Math.min(99, task.progress ?? 0)),
    created_at: inSeconds(task.createdAt),
    completed_at: task.state === 'succeeded' && finishedAt !== null ? inSeconds(finishedAt) : null,
    expires_at: null,
    prompt: null,
    size: facts.size ?? facts.resolution ?? '',
    seconds: String(task.usage.seconds ?? facts.seconds),
    remixed_from_video_id: facts.remixOf,
    error: errorOf(task),
  }
}

function errorOf({ state, error }: VideoTask): object | null {
  if (error) return { code: error.code, message: error.message }
  return state === 'cancelled' ? CANCELLED : null
}

/** Converts a time to whole seconds, as both protocols send it. */
export function inSeconds(ms: number): number {
  return Math.floor(ms / 1000)
}

/**
 * Returns a page of a list: up to `limit` tasks, and fewer if they are large.
 *
 * @param found up to `limit` + 1 tasks; the last one shows that there is a next page.
 */
export function toVideoList(found: readonly VideoTask[], limit: number): object {
  const data = fittingRows(found.slice(0, limit), toVideo)
  return {
    object: 'list',
    data,
    first_id: found[0]?.id ?? null,
    last_id: found[data.length - 1]?.id ?? null,
    has_more: data.length < found.length,
  }
}
