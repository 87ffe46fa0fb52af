import type { CallLogEntry, IdempotencyClaim } from '../../../core/call/index.ts'
import type { ChangeOrigin } from '../../../core/change-log/index.ts'
import type { Observation, TaskIntent, TaskState, VideoTask } from './task.ts'
import type { Resolved, TaskResolution } from './task-resolution.ts'

/** What came of an intent. */
export type Intended =
  /** Its money is held and its row stands: now, and not before, the create may be sent. */
  | { readonly kind: 'held'; readonly task: VideoTask }
  /** Nothing was changed. */
  | {
      readonly kind: 'refused'
      readonly refused: 'key_quota_exhausted' | 'insufficient_balance' | 'quota_lease_exhausted'
      /** Nano-units, for the call log only. */
      readonly required: bigint
      readonly available: bigint
    }
  /** The Idempotency-Key is another call's by now. Nothing was changed. */
  | { readonly kind: 'claim_lost' }

/** What the upstream answered to a create. */
export interface CreatedTask {
  readonly upstreamId: string
  /** What it told of the task at once. */
  readonly observation: Exclude<Observation, { readonly state: 'missing' }>
  /**
   * The Idempotency-Key of the creating call, completed with the record and kept until then. null: the one that it was
   * intended with, for a day.
   */
  readonly claim: (IdempotencyClaim & { readonly keepUntil: number }) | null
  /** The creating call's log entry, written with the record. */
  readonly entry: CallLogEntry | null
}

/** What came of an observation. */
export interface Observed {
  readonly task: VideoTask
  /**
   * - `unchanged`: it was known, or would have been a step backwards, or the task was over.
   * - `changed`: it is not over.
   * - `finished`: it is over with this; the charge is written, or the money held for it is free.
   */
  readonly result: 'unchanged' | 'changed' | 'finished'
}

/** Which tasks to list; members left out do not narrow. */
export interface TaskQuery {
  /** undefined: all accounts. */
  readonly account?: string | undefined
  readonly states?: readonly TaskState[] | undefined
  readonly model?: string | undefined
  readonly protocol?: VideoTask['protocol'] | undefined
  readonly ids?: readonly string[] | undefined
  /** Only those that the upstream took: callers know no others. */
  readonly taken?: boolean | undefined
}

/** Which part of a list: at most `limit` tasks behind the id `after`, or behind `skip` others. */
export interface TaskPage {
  readonly order: 'newest' | 'oldest'
  readonly limit: number
  readonly after?: string | undefined
  readonly skip?: number | undefined
}

/** Who polls, and until when nobody else does. */
export interface PollClaim {
  /** The process. */
  readonly owner: string
  readonly now: number
  readonly until: number
  /** Most tasks answered. */
  readonly limit: number
}

/** When a task that a process has claimed is due again, for anybody. */
export interface PollAgain {
  readonly owner: string
  readonly next: number
}

/**
 * Where video tasks and the money held for them are kept. Each operation is one transaction, in one process and across
 * many, and may be repeated when its answer was lost: the second time changes nothing and answers the same. Rejects when
 * the store cannot be reached: nothing is changed then, or all of it where only the answer was lost. Times are given,
 * in milliseconds since the epoch, so that a store has no clock.
 *
 * A create goes: `intend`, then the request; then `created` where the upstream took it, `withdraw` where it surely did
 * not, `doubt` where nobody knows. Where one line refuses and another is tried, `redirect` before each.
 */
export interface TaskStore {
  /** Whether it completes claims and writes log entries; one that does not ignores entries. */
  readonly settlesRecords: boolean

  /**
   * Holds money on account and key, writes the task as `intended`, and keeps the Idempotency-Key from ever being free by
   * itself: all three, or none.
   */
  intend(intent: TaskIntent): Promise<Intended>

  /**
   * Another line is about to be tried, as the one before surely did not take it.
   *
   * @returns false where the task is not `intended` any more: nothing may be sent.
   */
  redirect(
    id: string,
    target: Pick<VideoTask, 'line' | 'upstreamModel' | 'price'> & { readonly answerBy: number },
  ): Promise<boolean>

  /**
   * The upstream took it: records its id, completes the Idempotency-Key and writes the log entry; where it is over
   * already, its charge too. Also of one that was in doubt.
   *
   * @returns the task; undefined where there is no such intent.
   */
  created(id: string, created: CreatedTask, at: number): Promise<VideoTask | undefined>

  /**
   * No line took it: the task and the hold are gone, and the Idempotency-Key that it was intended with is free. Only of
   * one that was not created.
   */
  withdraw(id: string): Promise<void>

  /** Nobody knows whether the upstream took it: it is `unresolved`, and its money stays held. */
  doubt(id: string, at: number): Promise<void>

  /**
   * What a line tells of the task, by whomever it was asked: takes it forwards, and where it is over charges it, or frees
   * what was held. A success is charged once, under the creating call's request id.
   *
   * @param poll by the process that has claimed it, when it is to be polled again; left out by everybody else.
   * @returns undefined where there is no such task.
   */
  observe(id: string, observation: Observation, at: number, poll?: PollAgain): Promise<Observed | undefined>

  /**
   * An operator says what came of a task that is in doubt, or that its line tells nothing of: charges it, or frees what
   * was held, and the Idempotency-Key with it, and records the change. Once; a task that is over stays as it ended.
   *
   * @param origin who says so; its time is when the task ended.
   * @returns undefined where there is no such task.
   */
  resolve(id: string, resolution: TaskResolution, origin: ChangeOrigin): Promise<Resolved | undefined>

  /** A task of this account. */
  find(account: string, id: string): Promise<VideoTask | undefined>

  list(query: TaskQuery, page: TaskPage): Promise<readonly VideoTask[]>

  /** How many tasks there are of a kind. */
  count(query: TaskQuery): Promise<number>

  /** Deletes a task that is over. Its charge stays. */
  remove(account: string, id: string): Promise<'removed' | 'unfinished' | 'absent'>

  /**
   * Gives one process those tasks to poll that the upstream has and whose next poll is due, longest due first: nobody
   * else gets them until `until`, or until they are observed or put off.
   */
  claimDue(claim: PollClaim): Promise<readonly VideoTask[]>

  /** Ends a claim without an observation. Only where it is still this owner's. */
  putOff(id: string, again: PollAgain): Promise<void>

  /**
   * Takes intents whose create was not answered by its time as `unresolved`: their process died, or forgot them.
   *
   * @returns those that were taken so now, at most `limit`.
   */
  doubtUnanswered(now: number, limit: number): Promise<readonly VideoTask[]>

  /**
   * Ends those that are not over and were created before, each by itself: `expired`, the money held for them free. An
   * Idempotency-Key that was kept for one in doubt counts as used until `keepUntil`.
   *
   * @returns those that were ended now, at most `limit`.
   */
  expire(createdBefore: number, at: number, keepUntil: number, limit: number): Promise<readonly VideoTask[]>

  /**
   * Forgets tasks that were over before a time; their charges stay.
   *
   * @returns how many, at most `limit`.
   */
  prune(finishedBefore: number, limit: number): Promise<number>
}
