import type { ChangeOrigin } from '../../../core/change-log/index.ts'

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

/** A video task as operators see it. Times are milliseconds since the epoch, amounts nano-units. */
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
  /** In percent. */
  readonly progress: number | null
  /** The amount that is held until the task ends. */
  readonly hold: bigint
  readonly charge: { readonly amount: bigint } | null
  readonly error: { readonly code: string } | null
  readonly missingSince: number | null
  readonly createdAt: number
  readonly updatedAt: number
  readonly finishedAt: number | null
}

/** How an operator resolves a task: it made no video, or its video costs an amount, or its video used something. */
export type VideoTaskResolution =
  | { readonly outcome: 'released' }
  /** In nano-units; at most what is held for the task. */
  | { readonly outcome: 'charged'; readonly amount: bigint }
  /** Charged at the task's prices. */
  | {
      readonly outcome: 'charged'
      readonly usage: { readonly seconds?: number; readonly tokens?: number }
    }

/** The operations of a task store that the admin API needs. `MemoryTaskStore` and `SqlTaskStore` have them. */
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
      /** The last id of the previous page. */
      readonly after?: string | undefined
    },
  ): Promise<readonly VideoTaskFigures[]>

  /**
   * Ends a task as an operator decides, once, and records the change.
   *
   * @returns undefined if there is no such task. Any kind but `resolved` means that nothing changed: the task had ended,
   * its create is being sent, or the amount is more than what is held.
   */
  resolve(
    id: string,
    resolution: VideoTaskResolution,
    origin: ChangeOrigin,
  ): Promise<
    | {
        readonly kind: 'resolved' | 'settled' | 'under_way' | 'too_much'
        /** The task as it is now. */
        readonly task: VideoTaskFigures
      }
    | undefined
  >
}
