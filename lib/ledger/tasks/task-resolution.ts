import { formatAmount } from '../../core/catalog/index.ts'
import type { ChangeOrigin, RecordedChange } from '../../core/change-log/index.ts'
import { isFinished, type TaskError, type VideoTask, type VideoUsage } from './task.ts'
import { chargeOfTask, costOfTask } from './task-cost.ts'
import type { Progress } from './task-progress.ts'

/** How an operator resolves a task whose result is unknown. Amounts are nano-units. */
export type TaskResolution =
  /** The line made no video: the hold is released and nothing is charged. */
  | { readonly outcome: 'released' }
  /** The line made the video. The amount is charged; it is at most the hold. */
  | { readonly outcome: 'charged'; readonly amount: bigint }
  /** The line made the video. The usage is charged at the task's prices, as if the line had reported it. */
  | { readonly outcome: 'charged'; readonly usage: Partial<VideoUsage> }

/**
 * The result of a resolution.
 *
 * - `resolved`: the task has ended with it.
 * - `settled`: the task had ended before. Nothing was changed.
 * - `under_way`: the create of the task is just being sent. Nothing was changed.
 * - `too_much`: the amount exceeds the hold. Nothing was changed.
 */
export interface Resolved {
  readonly kind: 'resolved' | 'settled' | 'under_way' | 'too_much'
  /** The task as it is now. */
  readonly task: VideoTask
}

const GIVEN_UP: TaskError = {
  code: 'upstream_error',
  message: 'The video could not be generated, and was not charged. Create it again.',
}

/** Resolves a task. Returns the task and what happens to its hold, or why it cannot be resolved. */
export function resolvedTask(
  task: VideoTask,
  resolution: TaskResolution,
  at: number,
): Progress | Exclude<Resolved['kind'], 'resolved'> {
  if (isFinished(task)) return 'settled'
  // The process that sends the create still has to record the result in this task.
  if (task.state === 'intended') return 'under_way'
  const over = { ...task, missingSince: null, updatedAt: Math.max(task.updatedAt, at), finishedAt: at }
  if (resolution.outcome === 'released')
    return { task: { ...over, state: 'failed', error: GIVEN_UP }, money: 'release' }
  const made = { ...over, state: 'succeeded', progress: 100 } as const
  if ('usage' in resolution) {
    const { seconds = null, tokens = null } = resolution.usage
    const usage = { seconds: seconds ?? task.usage.seconds, tokens: tokens ?? task.usage.tokens }
    return { task: { ...made, usage, charge: chargeOfTask({ ...task, usage }) }, money: 'charge' }
  }
  const { amount } = resolution
  if (amount > task.hold) return 'too_much'
  const items = [{ unit: 'request', quantity: 1, price: amount }] as const
  const charge = { ...costOfTask(task), amount, items, source: 'estimated' } as const
  return { task: { ...made, charge }, money: 'charge' }
}

export function resolutionChange(before: VideoTask, after: VideoTask, origin: ChangeOrigin): RecordedChange {
  return {
    ...origin,
    action: 'video_task.resolved',
    subject: after.id,
    before: figuresOf(before, before.hold),
    after: figuresOf(after, 0n),
  }
}

function figuresOf({ state, account, line, charge, usage }: VideoTask, held: bigint): object {
  return {
    state,
    account,
    line,
    held: formatAmount(held),
    charged: charge && formatAmount(charge.amount),
    usage,
  }
}
