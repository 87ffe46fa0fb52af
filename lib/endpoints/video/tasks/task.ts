import type { ChargeItem, IdempotencyClaim } from '../../../core/call/index.ts'
import type { Price } from '../../../core/catalog/index.ts'
import type { ErrorCode } from '../../../core/errors/index.ts'

/**
 * What a task has come to, in one vocabulary for all protocols. Only ever forwards, and a state of the last row is
 * final:
 *
 * - `intended`: its create is about to be sent, or on its way.
 * - `unresolved`: nobody knows whether the upstream took it: the create was not answered, or its process died.
 * - `queued`, `running`: the upstream has it.
 * - `succeeded`, `failed`, `cancelled`, `expired`: it is over. `expired` is also what took so long that its money could
 *   not be held any more, an unresolved one included.
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

/** The states that an upstream can tell of. */
export type ObservedState = Exclude<TaskState, 'intended' | 'unresolved'>

/** What is known of the video, to answer reads with: as it was asked for, then as the upstream tells. Never the prompt. */
export interface VideoFacts {
  /** How long it is to be, in seconds; the protocol's default where nothing was asked for. */
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
  /** Our id of the task that this is a remix of. */
  readonly remixOf: string | null
}

/** What a task has used, as its line reported it; null for what it did not. */
export interface VideoUsage {
  readonly seconds: number | null
  /** Output tokens. */
  readonly tokens: number | null
}

/** Why a task failed. Both are fit for callers: no upstream text. */
export interface TaskError {
  readonly code: ErrorCode
  readonly message: string
}

/** What a finished task came to. */
export interface TaskCharge {
  /** Nano-units. */
  readonly amount: bigint
  readonly items: readonly ChargeItem[]
  /** Whether the quantities are the line's own, or those that were asked for. */
  readonly source: 'measured' | 'estimated'
}

/** A video, from the moment that its create is about to be sent. Times are milliseconds since the epoch. */
export interface VideoTask {
  /** Ours, the one that callers see: `video_…`; sorts by the time it was made. */
  readonly id: string
  /** The call that creates it: its charge is written under this id. */
  readonly requestId: string
  readonly account: string
  /** The key whose quota pays too; null where nobody's does. */
  readonly key: string | null
  /** As the caller named it. */
  readonly model: string
  /** Where it is: reads, downloads and cancels go there and nowhere else. */
  readonly line: string
  readonly upstreamModel: string
  /** null as long as the upstream has not told it. */
  readonly upstreamId: string | null
  /** The protocol it was created with. */
  readonly protocol: 'openai' | 'ark'
  readonly state: TaskState
  readonly facts: VideoFacts
  /** Of the model on this line when it was created: later price changes do not touch it. */
  readonly price: Price
  /** The most it can cost, in nano-units: held for it on account and key until it is over. */
  readonly hold: bigint
  readonly usage: VideoUsage
  /** null until it has succeeded. */
  readonly charge: TaskCharge | null
  readonly error: TaskError | null
  /** Percent, where the line tells. */
  readonly progress: number | null
  /** Where the line keeps the video, where it tells. Its own host's and short-lived: what callers get of it is the face's. */
  readonly contentUrl: string | null
  /** Since when the line does not know it; null while it does. */
  readonly missingSince: number | null
  readonly createdAt: number
  /** When the upstream was last heard of. */
  readonly updatedAt: number
  readonly finishedAt: number | null
}

/** What a line tells of a task. Members left out are not known any better than before. */
export type Observation =
  | {
      readonly state: ObservedState
      readonly progress?: number | null
      readonly facts?: Partial<VideoFacts>
      readonly usage?: Partial<VideoUsage>
      readonly error?: TaskError | null
      readonly contentUrl?: string | null
    }
  /** The line answers, and knows no such task. That alone does not end it: see {@link FORGOTTEN_MS}. */
  | { readonly state: 'missing' }

/** A task as it is intended; the store adds the rest. */
export type TaskIntent = Pick<
  VideoTask,
  | 'id'
  | 'requestId'
  | 'account'
  | 'key'
  | 'model'
  | 'line'
  | 'upstreamModel'
  | 'protocol'
  | 'facts'
  | 'price'
  | 'hold'
  | 'createdAt'
> & {
  /** By when the create must have been answered; later it counts as unresolved. */
  readonly answerBy: number
  /** The creating call's Idempotency-Key: taken out of its lease, until it is known what became of the create. */
  readonly claim: IdempotencyClaim | null
}

/** Longest that money is held for a task: then it is over, whatever becomes of it upstream. */
export const LONGEST_HOLD_MS = 48 * 3_600_000

/** A task that its line has not known for that long is lost. */
export const FORGOTTEN_MS = 600_000

/** Whether a task is over, and its money with it. */
export function isFinished({ state }: Pick<VideoTask, 'state'>): boolean {
  return state === 'succeeded' || state === 'failed' || state === 'cancelled' || state === 'expired'
}

/** The id of the task that a call creates: a call creates one at most. */
export function taskIdOf(requestId: string): string {
  return `video_${requestId.replace(/^req_/, '')}`
}
