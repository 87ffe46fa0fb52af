import type { Logger } from '../../../core/call/index.ts'
import { KEPT_KEY_MS } from '../../../ledger/tasks/new-task.ts'
import { MAX_HOLD_MS, type VideoTask } from '../../../ledger/tasks/task.ts'
import type { TaskStore } from '../../../ledger/tasks/task-store.ts'

/** How often unresolved and expired tasks are looked for. */
const UPKEEP_MS = 10_000
const UPKEEP_TASKS = 100
/** If the upkeep did not run for this long, the polls may not have run either. */
const STOOD_STILL_MS = 600_000
/** After a standstill, expired tasks wait this long for a poll. */
const CATCH_UP_MS = 3_600_000

const UNANSWERED = 'its create was not answered, or its process died'
const GIVEN_UP = 'the money held for it is free, and it is not charged'

/** Ends what no poll ends: intents without an answer, tasks that never finish, and tasks that ended long ago. */
export class TaskUpkeep {
  readonly #store: TaskStore
  readonly #keepTasksMs: number
  readonly #logger: Logger
  #running: Promise<void> | undefined
  #at = 0
  /** When the upkeep began, or went on after a standstill. */
  #resumedAt = 0
  #polledAt = 0
  #fails = false

  /** @param keepTasksMs how long a task is kept after its end. */
  constructor(store: TaskStore, keepTasksMs: number, logger: Logger) {
    this.#store = store
    this.#keepTasksMs = keepTasksMs
    this.#logger = logger
  }

  /** Notes that all tasks have been polled that were due at this time. */
  notePolled(at: number): void {
    this.#polledAt = at
  }

  /** Begins, unless it runs or has just run. Never throws: a failure is logged once, until it succeeds again. */
  begin(): void {
    const now = Date.now()
    const before = this.#at
    if (this.#running || (now - before < UPKEEP_MS && now >= before)) return
    this.#at = now
    if (now - before > STOOD_STILL_MS || now < before) this.#resumedAt = now
    const polledAt = now - this.#resumedAt < CATCH_UP_MS ? Math.min(this.#polledAt, now) : now
    this.#running = this.#run(now, polledAt).finally(() => {
      this.#running = undefined
    })
  }

  /** Resolves when the running upkeep has ended. Never rejects. */
  async ended(): Promise<void> {
    await this.#running
  }

  async #run(now: number, polledAt: number): Promise<void> {
    try {
      await this.#endOld(now, polledAt)
      this.#fails = false
    } catch (error) {
      if (!this.#fails) this.#logger.error({ err: error }, 'old video tasks cannot be ended')
      this.#fails = true
    }
  }

  /**
   * @param polledAt the last time at which no poll was overdue. Tasks that became too old since then are polled first: if no process ran for days,
   *   the line may have finished them.
   */
  async #endOld(now: number, polledAt: number): Promise<void> {
    const store = this.#store
    const steps = [
      async () =>
        this.#warn(
          await store.markUnanswered(now, UPKEEP_TASKS),
          `it is unknown whether the line accepted a video task: ${UNANSWERED}`,
        ),
      () => store.prune(now - this.#keepTasksMs, UPKEEP_TASKS),
      async () =>
        this.#warn(
          await store.expire(polledAt - MAX_HOLD_MS, now, now + KEPT_KEY_MS, UPKEEP_TASKS),
          `a video task was given up after 48 hours: ${GIVEN_UP}`,
        ),
    ]
    const failures: unknown[] = []
    // A failed step does not prevent the other steps.
    for (const step of steps) await step().catch((error: unknown) => failures.push(error))
    if (failures.length > 0) throw failures[0]
  }

  #warn(tasks: readonly VideoTask[], message: string): void {
    for (const { id, requestId, account, line, upstreamId } of tasks) {
      const upstream = upstreamId !== null && { upstreamId }
      this.#logger.warn({ task: id, requestId, account, line, ...upstream }, message)
    }
  }
}
