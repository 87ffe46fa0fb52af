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

/** What the admin API reads of the video tasks. `MemoryTaskStore` and `SqlTaskStore` fit as they are. */
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
}
