import type { AttemptNote, Logger, OpenCall, RoutingTrace } from '../../../core/call/index.ts'
import { isFinished, type VideoTask } from '../../../ledger/tasks/task.ts'
import type { TaskStore } from '../../../ledger/tasks/task-store.ts'
import { cappedWait } from '../../../routing/attempt/upstream-retry-after.ts'
import type { CancelOutcome, LineClient, LineClients, ReadOutcome } from './line-client.ts'
import { storeAnswer, storeAnswerFor } from './store-wait.ts'

/** The parts that {@link TaskService} works with. */
export interface TaskServiceDeps {
  readonly tasks: TaskStore
  readonly clients: LineClients
  /** Returns the trace of a call that goes to one line only. */
  readonly newTrace: () => RoutingTrace
  readonly logger: Logger
}

/** A task as its line reports it now, or its last known state if the line does not answer. */
interface Refreshed {
  readonly task: VideoTask
  readonly outcome: ReadOutcome | undefined
}

/** A read of a task that is running, and the calls that wait for it. */
interface Asking {
  readonly calls: Set<OpenCall>
  readonly refreshed: Promise<Refreshed>
}

const TASK_ID = /^video_[0-9a-z]{1,64}$/
const NEVER = new AbortController().signal
/** How long a read of a line may take. After that, the last known state is returned. */
const MAX_READ_MS = 10_000
/** How long the deletion on the line may take. The task is deleted here in any case. */
const MAX_DELETION_MS = 5000

/** Finds, refreshes, cancels and deletes the tasks of callers. All requests about a task go to its own line. */
export class TaskService {
  readonly #deps: TaskServiceDeps
  /** Running reads by task. Calls for one task share a read. */
  readonly #asked = new Map<string, Asking>()

  constructor(deps: TaskServiceDeps) {
    this.#deps = deps
  }

  /**
   * Returns the last known state of a task of the caller's account.
   *
   * @throws {GatewayError} `not_found` if the account has no such task.
   */
  async find(call: OpenCall, id: string): Promise<VideoTask> {
    const account = call.principal?.accountId
    if (account === undefined || !TASK_ID.test(id)) throw call.refuse('not_found')
    const task = await storeAnswerFor(call, this.#deps.tasks.find(account, id))
    if (!task || task.upstreamId === null) throw call.refuse('not_found')
    call.model = task.model
    return task
  }

  /** Returns a task of any account. The caller must have checked that the request may see it. */
  async findAny(call: OpenCall, id: string): Promise<VideoTask> {
    if (!TASK_ID.test(id)) throw call.refuse('not_found')
    const query = { ids: [id], taken: true }
    const [task] = await storeAnswerFor(call, this.#deps.tasks.list(query, { order: 'newest', limit: 1 }))
    if (!task) throw call.refuse('not_found')
    call.model = task.model
    return task
  }

  /** Returns the task after asking its line; the last known state if the line does not answer. */
  async current(call: OpenCall, task: VideoTask): Promise<VideoTask> {
    return (await this.#refresh(call, task)).task
  }

  /** Returns the client of the task's line for a call; undefined if the config no longer has the line. */
  clientOf(call: OpenCall, task: VideoTask): LineClient | undefined {
    return this.#deps.clients(task.line, this.noteFor([call], task))
  }

  /** Returns a note that adds exchanges with a task's line to the traces of calls. */
  noteFor(calls: Iterable<OpenCall>, { upstreamModel }: VideoTask): AttemptNote {
    return (attempt) => {
      for (const call of calls) {
        call.routing ??= this.#deps.newTrace()
        call.routing.attempts = [...call.routing.attempts, { ...attempt, upstreamModel }]
      }
    }
  }

  /**
   * Cancels a queued task, or deletes one that has ended.
   *
   * @throws {GatewayError} `conflict` if the task is running; the line's failure if it did not answer.
   */
  async cancel(call: OpenCall, known: VideoTask): Promise<void> {
    const { task, outcome } = await this.#refresh(call, known)
    if (isFinished(task)) return this.#remove(call, task)
    if (task.state !== 'queued') throw call.refuse('conflict', { message: RUNNING })
    if (outcome?.kind === 'away') throw refusedAway(call, outcome)
    const client = this.clientOf(call, task)
    if (!client) throw call.refuse('no_candidate')
    return this.#takenBack(call, task, await client.cancel(task, NEVER))
  }

  async #takenBack(call: OpenCall, task: VideoTask, outcome: CancelOutcome): Promise<void> {
    if (outcome.kind === 'away') throw refusedAway(call, outcome)
    if (outcome.kind === 'cancelled' || outcome.kind === 'deleted') {
      const { tasks } = this.#deps
      const observed = await storeAnswerFor(call, tasks.observe(task.id, { state: 'cancelled' }, Date.now()))
      // If another process has ended the task first, its charge stands, and the line no longer has the video. A
      // task-style caller can read a cancelled task; OpenAI has no such status, and a deleted video is not found.
      const isReadable = call.protocol.name === 'ark' && observed?.task.state === 'cancelled'
      if (observed && !isReadable) await storeAnswerFor(call, tasks.remove(task.account, task.id))
      return
    }
    const now = await storeAnswerFor(call, this.#deps.tasks.find(task.account, task.id))
    // Another call has cancelled or deleted it.
    if (!now || now.state === 'cancelled') return
    // A line may not know a new task for a moment.
    throw outcome.kind === 'conflict'
      ? call.refuse('conflict', { message: RUNNING })
      : call.refuse('upstream_error')
  }

  async #remove(call: OpenCall, task: VideoTask): Promise<void> {
    const removed = await this.clientOf(call, task)?.remove(task, AbortSignal.timeout(MAX_DELETION_MS))
    if (removed?.kind === 'away' || removed?.kind === 'conflict') {
      const { upstreamStatus, detail } = removed
      this.#deps.logger.warn(
        { requestId: call.id, task: task.id, line: task.line, upstreamStatus, detail },
        'video: a deleted task could not be deleted at its line',
      )
    }
    const result = await storeAnswerFor(call, this.#deps.tasks.remove(task.account, task.id))
    if (result === 'absent') throw call.refuse('not_found')
    if (result === 'unfinished') throw call.refuse('conflict')
  }

  async #refresh(call: OpenCall, task: VideoTask): Promise<Refreshed> {
    if (isFinished(task)) return { task, outcome: undefined }
    const { calls, refreshed } = this.#asked.get(task.id) ?? this.#begin(task)
    calls.add(call)
    try {
      return await refreshed
    } catch (error) {
      return storeAnswerFor(call, Promise.reject(error))
    }
  }

  #begin(task: VideoTask): Asking {
    const calls = new Set<OpenCall>()
    const refreshed = this.#ask(task, calls).finally(() => this.#asked.delete(task.id))
    const asking = { calls, refreshed }
    this.#asked.set(task.id, asking)
    return asking
  }

  async #ask(task: VideoTask, calls: Iterable<OpenCall>): Promise<Refreshed> {
    const client = this.#deps.clients(task.line, this.noteFor(calls, task))
    const outcome = await client?.read(task, AbortSignal.timeout(MAX_READ_MS))
    if (!outcome || outcome.kind === 'away') return { task, outcome }
    const observation = outcome.kind === 'answered' ? outcome.observation : { state: 'missing' as const }
    const observed = await storeAnswer(this.#deps.tasks.observe(task.id, observation, Date.now()))
    return { task: observed?.task ?? task, outcome }
  }
}

/** Returns the error of a line that did not answer, or refused. */
function refusedAway(call: OpenCall, { code, retryAfterMs }: Extract<CancelOutcome, { kind: 'away' }>) {
  return call.refuse(code, { retryAfterMs: cappedWait(retryAfterMs) })
}

const RUNNING =
  'The video is already being generated and cannot be cancelled. Delete it when it has finished.'
