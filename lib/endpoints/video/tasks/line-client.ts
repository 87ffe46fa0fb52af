import type { AttemptNote } from '../../../core/call/index.ts'
import type { ErrorCode } from '../../../core/errors/index.ts'
import type { KnownObservation, VideoTask } from '../../../ledger/tasks/task.ts'

/** The facts of an exchange with a line, for the routing trace and the log only; callers never see them. */
export interface LineReply {
  /** null if there was no answer. */
  readonly upstreamStatus: number | null
  /** The cause of the failure, for operators; null if nothing failed. */
  readonly detail: string | null
}

/** The result of a create. A create is never sent to the same line twice. */
export type CreateOutcome = LineReply &
  (
    | { readonly kind: 'accepted'; readonly upstreamId: string; readonly observation: KnownObservation }
    /**
     * The line surely did not accept it: there was no connection, or the line refused (4xx, 429, 503). `next`: whether
     * another line may be tried. `param`: the member of the request that the line named.
     */
    | {
        readonly kind: 'refused'
        readonly code: ErrorCode
        readonly next: boolean
        readonly param?: string
        readonly retryAfterMs?: number
      }
    /**
     * It is unknown whether the line accepted it: the connection broke, a timeout expired, or the answer was invalid.
     * The create must not be sent again.
     */
    | { readonly kind: 'unknown'; readonly code: ErrorCode }
  )

/** The result of a read. */
export type ReadOutcome = LineReply &
  (
    | { readonly kind: 'answered'; readonly observation: KnownObservation }
    /** The line answered that it has no such task. */
    | { readonly kind: 'missing' }
    /** The line did not answer, answered invalidly or refused access: the state of the task is unknown. */
    | { readonly kind: 'away'; readonly code: ErrorCode; readonly retryAfterMs?: number }
  )

export type CancelOutcome = LineReply &
  (
    | { readonly kind: 'cancelled' | 'deleted' | 'missing' }
    /** The task is running or has ended, so it cannot be cancelled. */
    | { readonly kind: 'conflict' }
    | { readonly kind: 'away'; readonly code: ErrorCode; readonly retryAfterMs?: number }
  )

/** The place of a finished video. `headers`: the line's credentials, if the address needs them. */
export type ContentSource =
  | { readonly kind: 'at'; readonly url: string; readonly headers: Readonly<Record<string, string>> }
  | { readonly kind: 'missing' }
  | { readonly kind: 'away'; readonly code: ErrorCode }

/**
 * The requests to one line about its tasks. No method throws or rejects because of what the line does. When `signal` is
 * aborted, the method returns as if the line had not answered.
 *
 * @typeParam Request the create, in the caller's protocol.
 */
export interface LineClient<Request = unknown> {
  create(request: Request, signal: AbortSignal): Promise<CreateOutcome>
  read(task: VideoTask, signal: AbortSignal): Promise<ReadOutcome>
  /** Cancels a queued task. */
  cancel(task: VideoTask, signal: AbortSignal): Promise<CancelOutcome>
  /** Deletes a task that has ended. The result is `deleted` for a line that cannot delete, too. */
  remove(task: VideoTask, signal: AbortSignal): Promise<CancelOutcome>
  /** @param part the video, a still, or all stills in one image. */
  content(
    task: VideoTask,
    part: 'video' | 'thumbnail' | 'spritesheet',
    signal: AbortSignal,
  ): Promise<ContentSource>
}

/**
 * Returns the client of a line; undefined if the config no longer has the line. `note` receives the record of each
 * exchange.
 */
export type LineClients<Request = unknown> = (
  line: string,
  note?: AttemptNote,
) => LineClient<Request> | undefined
