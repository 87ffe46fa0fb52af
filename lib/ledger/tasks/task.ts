import type { IdempotencyClaim, LateCharge } from '../../core/call/index.ts'
import type { Price, Tags } from '../../core/catalog/index.ts'
import type { ErrorCode } from '../../core/errors/index.ts'
import type { BudgetPeriod } from '../budgets/budget.ts'

/**
 * The state of a task, the same for all protocols. A task never goes back to an earlier state. The states of the last
 * row are final.
 *
 * - `intended`: the create is being sent, or about to be.
 * - `unresolved`: it is unknown whether the line accepted the create: it was not answered, or its process died.
 * - `queued`, `running`: the line has the task.
 * - `succeeded`, `failed`, `cancelled`, `expired`: the task has ended. A task that has not ended after the longest
 *   hold, unresolved or not, is `expired` too.
 */
export type TaskState =
  | 'intended'
  | 'unresolved'
  | 'queued'
  | 'running'
  | 'succeeded'
  | 'failed'
  | 'cancelled'
  | 'expired'

/** The states that a line can report. */
export type ObservedState = Exclude<TaskState, 'intended' | 'unresolved'>

/** The known facts about the video: as requested, then as the line reports. It never includes the prompt. */
export interface VideoFacts {
  /** The length in seconds; the protocol's default if the request has none. */
  readonly seconds: number
  /** `1280x720`. */
  readonly size: string | null
  /** `720p`. */
  readonly resolution: string | null
  /** `16:9`. */
  readonly ratio: string | null
  readonly framesPerSecond: number | null
  readonly seed: number | null
  readonly audio: boolean | null
  /** The gateway's id of the task that this is a remix of. */
  readonly remixOf: string | null
}

/** The usage of a task, as its line reported it; null if it did not. */
export interface VideoUsage {
  readonly seconds: number | null
  /** Output tokens. */
  readonly tokens: number | null
}

/** Why a task failed. Callers see both members, so they contain no text of the line. */
export interface TaskError {
  readonly code: ErrorCode
  readonly message: string
}

/** The charge of a finished task. */
export type TaskCharge = Pick<LateCharge, 'amount' | 'items' | 'source' | 'cost'>

/** A video from the moment before its create is sent. Times are milliseconds since the epoch. */
export interface VideoTask {
  /** The gateway's id, which callers see: `video_…`. Ids sort by time. */
  readonly id: string
  /** The request id of the creating call, under which the task is charged. */
  readonly requestId: string
  readonly account: string
  /** The key whose quota is charged too; null if there is none. */
  readonly key: string | null
  /** The user and tags that the caller has given; absent if there were none. */
  readonly user?: string | null
  readonly tags?: Tags
  /** The caller's name of the model. */
  readonly model: string
  /** The line that has the task. All requests about the task go to it. */
  readonly line: string
  readonly upstreamModel: string
  /** null until the line has reported it. */
  readonly upstreamId: string | null
  /** The protocol of the create. */
  readonly protocol: 'openai' | 'ark'
  readonly state: TaskState
  readonly facts: VideoFacts
  /** The price of the model on this line at the time of the create. Later changes do not affect it. */
  readonly price: Price
  /** The price that the operator pays for the line, as of then. Absent: not known. */
  readonly lineCost?: Price | undefined
  /** The most that the task can cost, in nano-units. It is held on account and key until the task ends. */
  readonly hold: bigint
  readonly usage: VideoUsage
  /** null until the task has succeeded. */
  readonly charge: TaskCharge | null
  readonly error: TaskError | null
  /** In percent, if the line reports it. */
  readonly progress: number | null
  /** The line's own address of the video, if it reports one. It is short-lived, and callers never see it. */
  readonly contentUrl: string | null
  /** Since when the line has not known the task; null while it knows it. */
  readonly missingSince: number | null
  readonly createdAt: number
  /** When the line last reported the task. */
  readonly updatedAt: number
  readonly finishedAt: number | null
}

/** A report of a line about a task. Members that are left out are unchanged. */
export type Observation =
  | {
      readonly state: ObservedState
      readonly progress?: number | null
      readonly facts?: Partial<VideoFacts>
      readonly usage?: Partial<VideoUsage>
      readonly error?: TaskError | null
      readonly contentUrl?: string | null
    }
  /** The line answers that it has no such task. The task ends only after {@link FORGOTTEN_MS}. */
  | { readonly state: 'missing' }

/** An observation of a task that the line has. */
export type KnownObservation = Exclude<Observation, { readonly state: 'missing' }>

/** The members of a new task that the caller of the store provides. */
export type TaskIntent = Pick<
  VideoTask,
  | 'id'
  | 'requestId'
  | 'account'
  | 'key'
  | 'user'
  | 'tags'
  | 'model'
  | 'line'
  | 'upstreamModel'
  | 'protocol'
  | 'facts'
  | 'price'
  | 'lineCost'
  | 'hold'
  | 'createdAt'
> & {
  /** The budgets that its money counts against. Absent: none. */
  readonly budgets?: readonly BudgetPeriod[] | undefined
  /** By when the create must be answered; after that, the task counts as unresolved. */
  readonly answerBy: number
  /** The Idempotency-Key of the creating call. It does not expire until the result of the create is known. */
  readonly claim: IdempotencyClaim | null
}

/** The line that a create is sent to next. */
export type CreateTarget = Pick<TaskIntent, 'line' | 'upstreamModel' | 'price' | 'lineCost' | 'answerBy'>

/** How long money is held for a task. After that, the task ends, whatever its line does. */
export const MAX_HOLD_MS = 48 * 3_600_000

/** A task that its line has not known for this long is lost. */
export const FORGOTTEN_MS = 600_000

/** Whether a task has ended and its hold is closed. */
export function isFinished({ state }: Pick<VideoTask, 'state'>): boolean {
  return state === 'succeeded' || state === 'failed' || state === 'cancelled' || state === 'expired'
}

/** Returns the id of the task that a call creates; a call creates one at most. */
export function taskIdOf(requestId: string): string {
  return `video_${requestId.replace(/^req_/, '')}`
}
