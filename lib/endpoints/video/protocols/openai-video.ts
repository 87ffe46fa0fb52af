import type { TaskState, VideoTask } from '../tasks/task.ts'

/** The four words of the OpenAI-style protocol. What was not made, for whatever reason, has failed. */
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

/** A task as the OpenAI-style protocol tells of it. The prompt is not kept. */
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

function inSeconds(ms: number): number {
  return Math.floor(ms / 1000)
}

/** A page of a list. */
export function toVideoList(tasks: readonly VideoTask[], hasMore: boolean): object {
  return {
    object: 'list',
    data: tasks.map(toVideo),
    first_id: tasks[0]?.id ?? null,
    last_id: tasks.at(-1)?.id ?? null,
    has_more: hasMore,
  }
}
