import {
  FORGOTTEN_MS,
  isFinished,
  type KnownObservation,
  type Observation,
  type TaskError,
  type VideoFacts,
  type VideoTask,
} from './task.ts'
import { chargeOfTask } from './task-cost.ts'

/** A task after an observation, and what happens to its hold; null: it stays. */
export interface Progress {
  readonly task: VideoTask
  readonly money: 'charge' | 'release' | null
}

/**
 * Applies an observation to a task. A task never goes back to an earlier state, and does not change once it has ended.
 *
 * @returns undefined if nothing changes.
 */
export function progressOf(task: VideoTask, observation: Observation, at: number): Progress | undefined {
  if (isFinished(task) || task.upstreamId === null) return undefined
  return observation.state === 'missing' ? missing(task, at) : reported(task, observation, at)
}

/** Ends a task that is too old to be followed. Its hold is released. */
export function expiredTask(task: VideoTask, at: number): VideoTask {
  return { ...task, state: 'expired', error: TOO_OLD, missingSince: null, updatedAt: at, finishedAt: at }
}

/** The most that is believed of a line. No request asks for more than an hour. */
const MAX_SECONDS = 10_000
const MAX_FRAMES_PER_SECOND = 1000
const MAX_TOKENS = 1_000_000_000

const FAILED: TaskError = {
  code: 'upstream_error',
  message: 'The video could not be generated, and was not charged. Create it again, or change the prompt.',
}
const TOOK_TOO_LONG: TaskError = {
  code: 'upstream_timeout',
  message: 'The video was not generated in time, and was not charged. Create it again.',
}
const TOO_OLD: TaskError = {
  code: 'upstream_timeout',
  message: 'The video was not finished within two days, and was not charged. Create it again.',
}
const FORGOTTEN: TaskError = {
  code: 'upstream_error',
  message: 'The video was lost while it was generated, and was not charged. Create it again.',
}

/** Applies a `missing`. A line may not know a new task for a moment; a task that it does not know for long is lost. */
function missing(task: VideoTask, at: number): Progress {
  const missingSince = task.missingSince ?? at
  if (at - missingSince < FORGOTTEN_MS) return { task: { ...task, missingSince }, money: null }
  const lost = { state: 'failed', error: FORGOTTEN, missingSince, updatedAt: at, finishedAt: at } as const
  return { task: { ...task, ...lost }, money: 'release' }
}

function reported(task: VideoTask, observation: KnownObservation, at: number): Progress {
  const seen: VideoTask = {
    ...task,
    facts: factsOf(task.facts, observation.facts),
    usage: {
      seconds: quantityOf(observation.usage?.seconds, MAX_SECONDS) ?? task.usage.seconds,
      tokens: quantityOf(observation.usage?.tokens, MAX_TOKENS) ?? task.usage.tokens,
    },
    progress: furthest(task.progress, observation.progress ?? null),
    contentUrl: observation.contentUrl ?? task.contentUrl,
    missingSince: null,
    updatedAt: Math.max(task.updatedAt, at),
  }
  const over = { ...seen, finishedAt: at }
  switch (observation.state) {
    case 'queued':
      return { task: seen, money: null }
    case 'running':
      return { task: { ...seen, state: 'running' }, money: null }
    case 'succeeded':
      return {
        task: { ...over, state: 'succeeded', progress: 100, charge: chargeOfTask(seen) },
        money: 'charge',
      }
    case 'failed':
      return { task: { ...over, state: 'failed', error: observation.error ?? FAILED }, money: 'release' }
    case 'cancelled':
      return { task: { ...over, state: 'cancelled' }, money: 'release' }
    case 'expired':
      return {
        task: { ...over, state: 'expired', error: observation.error ?? TOOK_TOO_LONG },
        money: 'release',
      }
  }
}

/** Returns the facts with those that are reported. What a video is charged by where no usage is reported must be in range. */
function factsOf(before: VideoFacts, reported: Partial<VideoFacts> = {}): VideoFacts {
  return {
    ...before,
    ...reported,
    seconds: quantityOf(reported.seconds, MAX_SECONDS) || before.seconds,
    framesPerSecond: quantityOf(reported.framesPerSecond, MAX_FRAMES_PER_SECOND) || before.framesPerSecond,
  }
}

/** Returns a reported quantity; null if it is out of range. */
function quantityOf(reported: number | null | undefined, most: number): number | null {
  return typeof reported === 'number' && reported >= 0 && reported <= most ? reported : null
}

function furthest(before: number | null, now: number | null): number | null {
  if (before === null || now === null) return now ?? before
  return Math.max(before, now)
}
