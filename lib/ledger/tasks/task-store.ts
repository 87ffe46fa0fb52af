import type { CallLogEntry, IdempotencyClaim } from '../../core/call/index.ts'
import type { ChangeOrigin } from '../../core/change-log/index.ts'
import type { HoldRefusal } from '../hold.ts'
import type { CreateTarget, KnownObservation, Observation, TaskIntent, TaskState, VideoTask } from './task.ts'
import type { Resolved, TaskResolution } from './task-resolution.ts'

/** The result of an intent. */
export type Intended =
  /** The money is held and the task is written. Only now may the create be sent. */
  | { readonly kind: 'held'; readonly task: VideoTask }
  /** Nothing was changed. */
  | ({ readonly kind: 'refused' } & HoldRefusal)
  /** Another call has the Idempotency-Key now. Nothing was changed. */
  | { readonly kind: 'claim_lost' }

/** The line's answer to a create. */
export interface CreatedTask {
  readonly upstreamId: string
  /** The task as the answer described it. */
  readonly observation: KnownObservation
  /**
   * The Idempotency-Key of the creating call, which is completed with the record and kept until then. null: the one of
   * the intent, for a day.
   */
  readonly claim: (IdempotencyClaim & { readonly keepUntil: number }) | null
  /** The log entry of the creating call, which is written with the record. */
  readonly entry: CallLogEntry | null
}

/** The result of an observation. */
export interface Observed {
  readonly task: VideoTask
  /** Whether the task has ended with this observation: its charge is written or its hold is released. */
  readonly finished: boolean
}

/** Selects tasks; a member that is left out does not filter. */
export interface TaskQuery {
  /** undefined: all accounts. */
  readonly account?: string | undefined
  readonly states?: readonly TaskState[] | undefined
  readonly model?: string | undefined
  readonly protocol?: VideoTask['protocol'] | undefined
  readonly ids?: readonly string[] | undefined
  /** Selects only tasks that a line has accepted: callers see no others. */
  readonly taken?: boolean | undefined
}

/** A part of a list: at most `limit` tasks behind the id `after`, or behind `skip` others. */
export interface TaskPage {
  readonly order: 'newest' | 'oldest'
  readonly limit: number
  readonly after?: string | undefined
  readonly skip?: number | undefined
}

/** A claim on due tasks: until `until`, no other process gets them. */
export interface PollClaim {
  /** The process. */
  readonly owner: string
  readonly now: number
  readonly until: number
  /** Tasks that are due later than this are due now: the clock that it was planned on has been set back. Defaults to never. */
  readonly latest?: number
  /** Most tasks to return. */
  readonly limit: number
}

/** When a task that a process has claimed is due again, for any process. */
export interface PollAgain {
  readonly owner: string
  readonly next: number
}

/**
 * A store for video tasks and the money held for them. Each operation is one transaction and may be repeated if its
 * answer was lost: the second time it changes nothing and returns the same. An operation rejects if the store cannot be
 * reached; then nothing has changed, or everything if only the answer was lost. Times are parameters, in milliseconds
 * since the epoch, so that a store has no clock.
 *
 * A create begins with `intend`. Then the request is sent, and its result is recorded: `created` if the line accepted
 * it, `withdraw` if it surely did not, `markUnresolved` if that is unknown. If a line refuses and another is tried, `redirect`
 * comes first.
 */
export interface TaskStore {
  /** Whether the store completes claims and writes log entries; any other store ignores entries. */
  readonly settlesRecords: boolean

  /**
   * Holds money on account and key, writes the task as `intended`, and keeps the Idempotency-Key from expiring: all
   * three, or none.
   */
  intend(intent: TaskIntent): Promise<Intended>

  /**
   * Changes the line of an intent, because the previous line surely did not accept the create.
   *
   * @returns false if the task is not `intended` any more: nothing may be sent then.
   */
  redirect(id: string, target: CreateTarget): Promise<boolean>

  /**
   * Records that the line accepted the create: writes the line's id, completes the Idempotency-Key and writes the log
   * entry; if the task has ended already, writes its charge too. Also for an unresolved task.
   *
   * @returns the task; undefined if there is no such intent.
   */
  created(id: string, created: CreatedTask, at: number): Promise<VideoTask | undefined>

  /**
   * Removes an intent that no line accepted: releases its hold and frees its Idempotency-Key. Does nothing to a created
   * task.
   */
  withdraw(id: string): Promise<void>

  /** Sets a task to `unresolved`, because it is unknown whether the line accepted the create. Its money stays held. */
  markUnresolved(id: string, at: number): Promise<void>

  /**
   * Applies what a line reported about a task. If the task ends with it, it is charged or its hold is released. A
   * success is charged once, under the creating call's request id.
   *
   * @param poll when to poll the task again; only from the process that has claimed it.
   * @returns undefined if there is no such task.
   */
  observe(id: string, observation: Observation, at: number, poll?: PollAgain): Promise<Observed | undefined>

  /**
   * Ends a task as an operator decides: charges it or releases its hold, releases its Idempotency-Key and records the
   * change. A task that has ended stays as it is.
   *
   * @param origin who decided; its time is the end of the task.
   * @returns undefined if there is no such task.
   */
  resolve(id: string, resolution: TaskResolution, origin: ChangeOrigin): Promise<Resolved | undefined>

  /** Returns a task of this account. */
  find(account: string, id: string): Promise<VideoTask | undefined>

  list(query: TaskQuery, page: TaskPage): Promise<readonly VideoTask[]>

  /** Returns the number of tasks that match. */
  count(query: TaskQuery): Promise<number>

  /** Deletes a task that has ended. Its charge stays. */
  remove(account: string, id: string): Promise<'removed' | 'unfinished' | 'absent'>

  /**
   * Claims tasks whose poll is due, those that are due longest first. No other process gets them until `until`, or
   * until they are observed or postponed.
   */
  claimDue(claim: PollClaim): Promise<readonly VideoTask[]>

  /** Ends a claim without an observation, if it is still this owner's. */
  postpone(id: string, again: PollAgain): Promise<void>

  /**
   * Sets intents whose create was not answered in time to `unresolved`: their process died, or did not record the
   * result.
   *
   * @returns the tasks that were changed, at most `limit`.
   */
  markUnanswered(now: number, limit: number): Promise<readonly VideoTask[]>

  /**
   * Ends tasks that were created before a time and have not ended: each becomes `expired` and its hold is released. The
   * Idempotency-Key of an unresolved task counts as used until `keepUntil`.
   *
   * @returns the tasks that were ended, at most `limit`.
   */
  expire(createdBefore: number, at: number, keepUntil: number, limit: number): Promise<readonly VideoTask[]>

  /**
   * Deletes tasks that ended before a time. Their charges stay.
   *
   * @returns how many it deleted, at most `limit`.
   */
  prune(finishedBefore: number, limit: number): Promise<number>
}
