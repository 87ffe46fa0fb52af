import { formatAmount } from '../../../core/catalog/index.ts'
import type { ChangeOrigin, RecordedChange } from '../../../core/change-log/index.ts'
import { isFinished, type TaskError, type VideoTask, type VideoUsage } from './task.ts'
import { costOfTask } from './task-cost.ts'
import type { Progress } from './task-progress.ts'

/** What an operator says of a task that nobody else can say anything of. Amounts are nano-units. */
export type TaskResolution =
  /** No video came of it: what was held is free, and nothing is charged. */
  | { readonly outcome: 'released' }
  /** The video was made; what it costs, at most what is held for it. */
  | { readonly outcome: 'charged'; readonly amount: bigint }
  /** The video was made; what it used, charged at the task's prices as if its line had told it. */
  | { readonly outcome: 'charged'; readonly usage: Partial<VideoUsage> }

/**
 * What came of a resolution.
 *
 * - `resolved`: the task is over with it.
 * - `settled`: it was over before. Nothing was changed.
 * - `under_way`: its create is being sent at this moment. Nothing was changed.
 * - `too_much`: the amount is above what is held for it. Nothing was changed.
 */
export interface Resolved {
  readonly kind: 'resolved' | 'settled' | 'under_way' | 'too_much'
  /** As it stands now. */
  readonly task: VideoTask
}

const GIVEN_UP: TaskError = {
  code: 'upstream_error',
  message: 'The video could not be generated, and was not charged. Create it again.',
}

/** A task as an operator ends it, and what becomes of its money; else why it cannot be ended so. */
export function resolvedTask(
  task: VideoTask,
  resolution: TaskResolution,
  at: number,
): Progress | Exclude<Resolved['kind'], 'resolved'> {
  if (isFinished(task)) return 'settled'
  // Whoever sends it still has to say what came of it, and would find no task that it could say it of.
  if (task.state === 'intended') return 'under_way'
  const over = { ...task, missingSince: null, updatedAt: Math.max(task.updatedAt, at), finishedAt: at }
  if (resolution.outcome === 'released')
    return { task: { ...over, state: 'failed', error: GIVEN_UP }, money: 'release' }
  const made = { ...over, state: 'succeeded', progress: 100 } as const
  if ('usage' in resolution) {
    const { seconds = null, tokens = null } = resolution.usage
    const usage = { seconds: seconds ?? task.usage.seconds, tokens: tokens ?? task.usage.tokens }
    return { task: { ...made, usage, charge: costOfTask({ ...task, usage }) }, money: 'charge' }
  }
  const { amount } = resolution
  if (amount > task.hold) return 'too_much'
  const items = [{ unit: 'request', quantity: 1, price: amount }] as const
  return { task: { ...made, charge: { amount, items, source: 'estimated' } }, money: 'charge' }
}

/** What a store records of a task that an operator has ended. */
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
