import { randomUUID } from 'node:crypto'
import { consoleLogger, type Logger } from '../../../core/call/index.ts'
import type { LineClients, ReadOutcome } from './line-client.ts'
import { FIRST_POLL_MS, KEPT_KEY_MS } from './new-task.ts'
import { LONGEST_HOLD_MS, type VideoTask } from './task.ts'
import type { TaskStore } from './task-store.ts'

/** Options of {@link TaskSettler}. Times are milliseconds. */
export interface TaskSettlerOptions {
  /** Where the tasks are. All processes that share it may run a settler: each task is polled by one of them. */
  store: TaskStore
  /** How to ask a line; undefined for one that is not there any more. */
  clients: LineClients
  /** What this process is called. Defaults to a random name. */
  owner?: string
  /** Most tasks polled at a time. Defaults to 8. */
  concurrency?: number
  /** Shortest time between two polls of a task: a young one's. Defaults to 2000. */
  shortestPollMs?: number
  /** Longest time between two polls of a task; reached after ten times as long. Defaults to 60000. */
  longestPollMs?: number
  /** Longest that a line may take to answer. Defaults to 10000. */
  readMs?: number
  /** How often the store is asked for what is due. Defaults to 1000. */
  roundMs?: number
  /** How long a task that is over is remembered. Defaults to 30 days. */
  retainMs?: number
  /** How long the Idempotency-Key of a task that was given up counts as used. Defaults to 24 hours. */
  keepMs?: number
  /** Told of tasks in doubt, of those that are given up, and of outages. Defaults to the console. */
  logger?: Logger
}

/** A claim lasts for a poll and what it takes to write it; where its process dies another polls soon. */
const CLAIM_SPARE_MS = 20_000
/** How often it is looked for tasks in doubt, and for those that are too old. */
const UPKEEP_MS = 10_000
const UPKEEP_TASKS = 100

/**
 * Polls the tasks that are not over, whether anybody asks for them or not, so that each is charged when it succeeds and
 * its money is free when it does not. It holds nothing itself: after a restart it goes on where it was.
 *
 * @throws TypeError at construction when an option is unusable.
 * @example
 * const video = videoEndpoints({ tasks, lines: new LineAccess({ catalog }) })
 * const settler = new TaskSettler({ store: tasks, clients: video.clients })
 * // at shutdown
 * await settler.close()
 */
export class TaskSettler {
  readonly #store: TaskStore
  readonly #clients: LineClients
  readonly #settings: ReturnType<typeof validate>
  readonly #logger: Logger
  readonly #closing = new AbortController()
  readonly #polls = new Set<Promise<void>>()
  readonly #unknownLines = new Set<string>()
  #round: Promise<void> = Promise.resolve()
  #timer: NodeJS.Timeout | undefined
  #upkeepAt = Number.NEGATIVE_INFINITY
  #away = false

  constructor(options: TaskSettlerOptions) {
    this.#store = options.store
    this.#clients = options.clients
    this.#logger = options.logger ?? consoleLogger
    this.#settings = validate(options)
    this.#wakeIn(0)
  }

  /** Ends what is under way, and hands the tasks that were being polled back. Never rejects. */
  async close(): Promise<void> {
    clearTimeout(this.#timer)
    this.#closing.abort()
    await this.#round
    await Promise.all(this.#polls)
  }

  #wakeIn(ms: number): void {
    if (this.#closing.signal.aborted) return
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => {
      this.#round = this.#go()
    }, ms).unref()
  }

  async #go(): Promise<void> {
    const free = this.#settings.concurrency - this.#polls.size
    let started = 0
    try {
      await this.#upkeep()
      if (free > 0) started = await this.#pollDue(free)
      if (this.#away) this.#logger.info({}, 'video tasks are polled again')
      this.#away = false
    } catch (error) {
      if (!this.#away) this.#logger.error({ err: error }, 'video tasks cannot be polled: their store is away')
      this.#away = true
    }
    // Where more may be due, the next is asked for as soon as there is room.
    const moreMayBeDue = started > 0 && started === free
    if (!moreMayBeDue) this.#wakeIn(this.#settings.roundMs)
    else if (this.#polls.size === 0) this.#wakeIn(0)
    else void Promise.race(this.#polls).then(() => this.#wakeIn(0))
  }

  async #pollDue(limit: number): Promise<number> {
    const { owner, claimMs } = this.#settings
    const now = Date.now()
    const due = await this.#store.claimDue({ owner, now, until: now + claimMs, limit })
    for (const task of due) {
      const poll = this.#poll(task).finally(() => this.#polls.delete(poll))
      this.#polls.add(poll)
    }
    return due.length
  }

  async #poll(task: VideoTask): Promise<void> {
    const { owner } = this.#settings
    try {
      const outcome = await this.#read(task)
      const now = Date.now()
      const next = now + this.#pauseOf(task, now)
      if (outcome.kind === 'away') {
        const { retryAfterMs = 0 } = outcome
        const handedBack = this.#closing.signal.aborted
        await this.#store.putOff(task.id, {
          owner,
          next: handedBack ? now : Math.max(next, now + retryAfterMs),
        })
        return
      }
      const observation = outcome.kind === 'told' ? outcome.observation : ({ state: 'missing' } as const)
      await this.#store.observe(task.id, observation, now, { owner, next })
    } catch (error) {
      // It is due again when its claim ends.
      this.#logger.error({ err: error, task: task.id, line: task.line }, 'a video task could not be polled')
    }
  }

  async #read(task: VideoTask): Promise<ReadOutcome> {
    const client = this.#clients(task.line)
    if (!client) {
      this.#tellUnknown(task)
      return { kind: 'away', code: 'upstream_error', upstreamStatus: null, detail: 'no such line' }
    }
    const { readMs } = this.#settings
    return client.read(task, AbortSignal.any([this.#closing.signal, AbortSignal.timeout(readMs)]))
  }

  /** The older a task is, the longer it may take; spread, so that those made together are not polled together for ever. */
  #pauseOf({ createdAt }: VideoTask, now: number): number {
    const { shortestPollMs, longestPollMs } = this.#settings
    const pause = Math.min(longestPollMs, Math.max(shortestPollMs, (now - createdAt) / 10))
    return Math.round(pause * (0.9 + 0.2 * Math.random()))
  }

  async #upkeep(): Promise<void> {
    const now = Date.now()
    if (now - this.#upkeepAt < UPKEEP_MS && now >= this.#upkeepAt) return
    for (const { id, requestId, account, line } of await this.#store.doubtUnanswered(now, UPKEEP_TASKS)) {
      this.#logger.warn(
        { task: id, requestId, account, line },
        'nobody knows whether this line took a video task: its create was not answered, or its process died',
      )
    }
    const { keepMs, retainMs } = this.#settings
    const given = await this.#store.expire(now - LONGEST_HOLD_MS, now, now + keepMs, UPKEEP_TASKS)
    for (const { id, requestId, account, line, upstreamId } of given) {
      this.#logger.warn(
        { task: id, requestId, account, line, upstreamId },
        'a video task was given up after 48 hours: the money held for it is free, and it is not charged',
      )
    }
    await this.#store.prune(now - retainMs, UPKEEP_TASKS)
    this.#upkeepAt = now
  }

  #tellUnknown({ line, id }: VideoTask): void {
    if (this.#unknownLines.has(line)) return
    this.#unknownLines.add(line)
    this.#logger.error({ line, task: id }, 'there are video tasks on a line that the config does not have')
  }
}

function validate(options: TaskSettlerOptions) {
  const { store, clients, owner = randomUUID(), concurrency = 8, keepMs = KEPT_KEY_MS } = options
  const { shortestPollMs = FIRST_POLL_MS, longestPollMs = 60_000, readMs = 10_000, roundMs = 1000 } = options
  const { retainMs = 30 * 86_400_000 } = options
  if (typeof store?.claimDue !== 'function')
    throw new TypeError('TaskSettler: "store" must be a TaskStore, such as a MemoryTaskStore')
  if (typeof clients !== 'function')
    throw new TypeError('TaskSettler: "clients" must be a function that answers the client of a line')
  for (const [name, value] of Object.entries({
    concurrency,
    shortestPollMs,
    longestPollMs,
    readMs,
    roundMs,
    retainMs,
    keepMs,
  })) {
    if (!(Number.isSafeInteger(value) && value > 0))
      throw new TypeError(`TaskSettler: "${name}" must be a positive whole number`)
  }
  return {
    owner,
    concurrency,
    shortestPollMs,
    longestPollMs,
    readMs,
    roundMs,
    retainMs,
    keepMs,
    claimMs: readMs + CLAIM_SPARE_MS,
  }
}
