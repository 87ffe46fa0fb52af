import type { TaskState, VideoTask } from '../../../ledger/tasks/task.ts'
import { inSeconds } from './openai-video.ts'

/** The statuses of the task-style protocol. */
export type TaskStatus = 'queued' | 'running' | 'succeeded' | 'failed' | 'cancelled'

const STATUS: Readonly<Record<TaskState, TaskStatus>> = {
  intended: 'queued',
  unresolved: 'queued',
  queued: 'queued',
  running: 'running',
  succeeded: 'succeeded',
  failed: 'failed',
  cancelled: 'cancelled',
  expired: 'failed',
}

/** Returns the states that have a status; undefined if the protocol has no such status. */
export function statesOf(word: string): TaskState[] | undefined {
  const states = Object.entries(STATUS).flatMap(([state, reads]) =>
    reads === word ? [state as TaskState] : [],
  )
  return states.length > 0 ? states : undefined
}

/**
 * Returns a task in the task-style protocol.
 *
 * @param contentUrl the signed address of the video.
 */
export function toVideoTask(task: VideoTask, contentUrl: string): object {
  const { facts, usage, error } = task
  const succeeded = task.state === 'succeeded'
  return {
    id: task.id,
    model: task.model,
    status: STATUS[task.state],
    ...(succeeded && { content: { video_url: contentUrl } }),
    ...(succeeded &&
      usage.tokens !== null && { usage: { completion_tokens: usage.tokens, total_tokens: usage.tokens } }),
    ...(error && { error: { code: error.code, message: error.message } }),
    created_at: inSeconds(task.createdAt),
    updated_at: inSeconds(task.updatedAt),
    duration: usage.seconds ?? facts.seconds,
    ...(facts.resolution !== null && { resolution: facts.resolution }),
    ...(facts.ratio !== null && { ratio: facts.ratio }),
    ...(facts.framesPerSecond !== null && { framespersecond: facts.framesPerSecond }),
    ...(facts.seed !== null && { seed: facts.seed }),
    ...(facts.audio !== null && { generate_audio: facts.audio }),
  }
}
