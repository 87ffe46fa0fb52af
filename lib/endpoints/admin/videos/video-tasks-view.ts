import type { ChangeOrigin } from '../../../core/change-log/index.ts'

/** What a video task can have come to. */
export const VIDEO_TASK_STATES = [
  'intended',
  'unresolved',
  'queued',
  'running',
  'succeeded',
  'failed',
  'cancelled',
  'expired',
] as const

export type VideoTaskState = (typeof VIDEO_TASK_STATES)[number]

/** A video task as those see it who run the service. Times are milliseconds since the epoch, amounts nano-units. */
export interface VideoTaskFigures {
  readonly id: string
  /** The call that created it. */
  readonly requestId: string
  readonly account: string
  readonly key: string | null
  readonly model: string
  readonly protocol: string
  readonly line: string
  readonly upstreamModel: string
  readonly upstreamId: string | null
  readonly state: VideoTaskState
  /** Percent. */
  readonly progress: number | null
  /** Held until it is over. */
  readonly hold: bigint
  readonly charge: { readonly amount: bigint } | null
  readonly error: { readonly code: string } | null
  readonly missingSince: number | null
  readonly createdAt: number
  readonly updatedAt: number
  readonly finishedAt: number | null
}

/** What an operator says of a task: that no video came of it, or what the video costs, or what it used. */
export type VideoTaskResolution =
  | { readonly outcome: 'released' }
  /** Nano-units; at most what is held for the task. */
  | { readonly outcome: 'charged'; readonly amount: bigint }
  /** Charged at the task's prices. */
  | {
      readonly outcome: 'charged'
      readonly usage: { readonly seconds?: number; readonly tokens?: number }
    }

/** What the admin API reads of the video tasks, and does to them. `MemoryTaskStore` and `SqlTaskStore` fit as they are. */
export interface VideoTasksView {
  list(
    query: {
      readonly account?: string | undefined
      readonly states?: readonly VideoTaskState[] | undefined
      readonly ids?: readonly string[] | undefined
    },
    page: {
      readonly order: 'newest'
      readonly limit: number
      /** The id behind which the page begins. */
      readonly after?: string | undefined
    },
  ): Promise<readonly VideoTaskFigures[]>

  /**
   * Ends a task as an operator says, once, and records it.
   *
   * @returns undefined where there is none; anything but `resolved` where nothing was changed: it was over already, its
   * create is being sent at this moment, or the amount is above what is held.
   */
  resolve(
    id: string,
    resolution: VideoTaskResolution,
    origin: ChangeOrigin,
  ): Promise<
    | {
        readonly kind: 'resolved' | 'settled' | 'under_way' | 'too_much'
        /** As it stands now. */
        readonly task: VideoTaskFigures
      }
    | undefined
  >
}
