import type { AttemptNote } from '../../../core/call/index.ts'
import type { ErrorCode } from '../../../core/errors/index.ts'
import type { Observation, VideoTask } from './task.ts'

/** What a line tells of a task that it has. */
export type KnownObservation = Exclude<Observation, { readonly state: 'missing' }>

/** What an exchange with a line came to beside its answer: for the routing trace and the log, never for callers. */
export interface LineReply {
  /** null where no answer came. */
  readonly upstreamStatus: number | null
  /** What went wrong, in words for the operator; null where nothing did. */
  readonly detail: string | null
}

/** What became of a create. It is never sent a second time to the same line. */
export type CreateOutcome = LineReply &
  (
    | { readonly kind: 'taken'; readonly upstreamId: string; readonly observation: KnownObservation }
    /**
     * The line surely did not take it: no connection was made, or it refused (4xx, 429, 503). `next`: whether another
     * line may be tried. `param`: the member of the request that it objects to.
     */
    | {
        readonly kind: 'refused'
        readonly code: ErrorCode
        readonly next: boolean
        readonly param?: string
        readonly retryAfterMs?: number
      }
    /** Nobody knows: the connection broke, a clock ran out, or the answer makes no sense. Not to be sent anywhere again. */
    | { readonly kind: 'unknown'; readonly code: ErrorCode }
  )

/** What became of a read, a cancel or a deletion. */
export type ReadOutcome = LineReply &
  (
    | { readonly kind: 'told'; readonly observation: KnownObservation }
    /** The line answers, and knows no such task. */
    | { readonly kind: 'missing' }
    /** It does not answer, or not sensibly, or refuses us: nothing is known. */
    | { readonly kind: 'away'; readonly code: ErrorCode; readonly retryAfterMs?: number }
  )

export type CancelOutcome = LineReply &
  (
    | { readonly kind: 'cancelled' | 'deleted' | 'missing' }
    /** It is running, or over, and cannot be cancelled. */
    | { readonly kind: 'conflict' }
    | { readonly kind: 'away'; readonly code: ErrorCode; readonly retryAfterMs?: number }
  )

/** Where the content of a finished task is to be had. `headers`: with our credentials, where the address needs them. */
export type ContentSource =
  | { readonly kind: 'at'; readonly url: string; readonly headers: Readonly<Record<string, string>> }
  | { readonly kind: 'missing' }
  | { readonly kind: 'away'; readonly code: ErrorCode }

/**
 * What can be asked of one line about the tasks on it. None of these throws or rejects for what the line does; each
 * ends when `signal` does, as if the line had not answered.
 *
 * @typeParam Request what a create is made of, in the caller's protocol.
 */
export interface LineClient<Request = unknown> {
  create(request: Request, signal: AbortSignal): Promise<CreateOutcome>
  read(task: VideoTask, signal: AbortSignal): Promise<ReadOutcome>
  /** Takes back a task that waits. */
  cancel(task: VideoTask, signal: AbortSignal): Promise<CancelOutcome>
  /** Deletes one that is over; a line that cannot answers `deleted`. */
  remove(task: VideoTask, signal: AbortSignal): Promise<CancelOutcome>
  /** @param part of what is offered: the video, a still of it, all stills in one. */
  content(
    task: VideoTask,
    part: 'video' | 'thumbnail' | 'spritesheet',
    signal: AbortSignal,
  ): Promise<ContentSource>
}

/**
 * The client of a line; undefined where the config has no such line any more. `note` is told of each exchange with it.
 */
export type LineClients<Request = unknown> = (
  line: string,
  note?: AttemptNote,
) => LineClient<Request> | undefined
