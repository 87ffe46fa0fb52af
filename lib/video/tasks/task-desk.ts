import type { Call, Logger } from '../../call/index.ts'
import type { LineClient, LineClients, ReadOutcome } from './line-client.ts'
import { isFinished, type VideoTask } from './task.ts'
import type { TaskStore } from './task-store.ts'

/** What reads and cancels work with. */
export interface TaskDeskParts {
  readonly tasks: TaskStore
  readonly clients: LineClients
  readonly logger: Logger
}

/** A task as its line tells of it now, or as it was last heard of where the line does not answer. */
interface Refreshed {
  readonly task: VideoTask
  readonly outcome: ReadOutcome | undefined
}

const TASK_ID = /^video_[0-9a-z]{1,64}$/
const NEVER = new AbortController().signal
/** A deletion upstream is tidying up: nobody waits longer for it. */
const TIDY_UP_MS = 5000

/** Finds, follows, cancels and deletes the tasks of callers. All of it is asked of the task's own line. */
export class TaskDesk {
  readonly #parts: TaskDeskParts
  /** A line is asked once at a time about a task, however many want to know. */
  readonly #asked = new Map<string, Promise<Refreshed>>()

  constructor(parts: TaskDeskParts) {
    this.#parts = parts
  }

  /**
   * A task of the caller's account, as it was last heard of.
   *
   * @throws {GatewayError} `not_found`, also of another account's.
   */
  async find(call: Call, id: string): Promise<VideoTask> {
    const account = call.principal?.accountId
    const task =
      account !== undefined && TASK_ID.test(id) ? await this.#parts.tasks.find(account, id) : undefined
    if (!task || task.upstreamId === null) throw call.refuse('not_found')
    call.model = task.model
    return task
  }

  /** Any account's, for whoever has proved otherwise that it may be seen. */
  async findAny(call: Call, id: string): Promise<VideoTask> {
    const query = { ids: [id], taken: true }
    const [task] = TASK_ID.test(id) ? await this.#parts.tasks.list(query, { order: 'newest', limit: 1 }) : []
    if (!task) throw call.refuse('not_found')
    call.model = task.model
    return task
  }

  /** The task as it is now; as it was where its line does not answer. */
  async current(task: VideoTask): Promise<VideoTask> {
    return (await this.#refresh(task)).task
  }

  /** What can be asked of the task's line; undefined where the config has it no more. */
  clientOf({ line }: VideoTask): LineClient | undefined {
    return this.#parts.clients(line)
  }

  /**
   * Takes a task back that waits, or deletes one that is over.
   *
   * @throws {GatewayError} `conflict` where it is running; what the line failed with.
   */
  async cancel(call: Call, known: VideoTask): Promise<void> {
    const { task, outcome } = await this.#refresh(known)
    if (isFinished(task)) return this.#remove(call, task)
    if (task.state !== 'queued') throw call.refuse('conflict', { message: RUNNING })
    if (outcome?.kind === 'away') throw call.refuse(outcome.code, { retryAfterMs: outcome.retryAfterMs })
    const client = this.clientOf(task)
    if (!client) throw call.refuse('no_candidate')
    const cancelled = await client.cancel(task, NEVER)
    switch (cancelled.kind) {
      case 'cancelled':
      case 'deleted':
        await this.#parts.tasks.observe(task.id, { state: 'cancelled' }, Date.now())
        return
      case 'conflict':
        throw call.refuse('conflict', { message: RUNNING })
      case 'missing':
        // It may just not know it yet.
        throw call.refuse('upstream_error')
      case 'away':
        throw call.refuse(cancelled.code, { retryAfterMs: cancelled.retryAfterMs })
    }
  }

  async #remove(call: Call, task: VideoTask): Promise<void> {
    const removed = await this.clientOf(task)?.remove(task, AbortSignal.timeout(TIDY_UP_MS))
    if (removed?.kind === 'away' || removed?.kind === 'conflict') {
      const { upstreamStatus, detail } = removed
      this.#parts.logger.warn(
        { requestId: call.id, task: task.id, line: task.line, upstreamStatus, detail },
        'video: a deleted task stays with its line',
      )
    }
    const result = await this.#parts.tasks.remove(task.account, task.id)
    if (result === 'absent') throw call.refuse('not_found')
    if (result === 'unfinished') throw call.refuse('conflict')
  }

  #refresh(task: VideoTask): Promise<Refreshed> {
    if (isFinished(task)) return Promise.resolve({ task, outcome: undefined })
    const known = this.#asked.get(task.id)
    if (known) return known
    const asking = this.#ask(task).finally(() => this.#asked.delete(task.id))
    this.#asked.set(task.id, asking)
    return asking
  }

  async #ask(task: VideoTask): Promise<Refreshed> {
    const outcome = await this.clientOf(task)?.read(task, NEVER)
    if (!outcome || outcome.kind === 'away') return { task, outcome }
    const observation = outcome.kind === 'told' ? outcome.observation : { state: 'missing' as const }
    const observed = await this.#parts.tasks.observe(task.id, observation, Date.now())
    return { task: observed?.task ?? task, outcome }
  }
}

const RUNNING =
  'The video is being made and cannot be cancelled any more. Read it again; delete it once it is over.'
