import { randomUUID } from 'node:crypto'
import { type Logger, quietLogger } from '../../../core/call/index.ts'
import {
  aFunction,
  aLogger,
  anObjectWith,
  aString,
  aWholeNumber,
  checkOptions,
  type OptionRules,
  required,
  someMilliseconds,
} from '../../../core/options/index.ts'
import { boundedStore, Outage } from '../../../core/store-guard/index.ts'
import { BackgroundLoop } from '../../../core/timing/index.ts'
import { FIRST_POLL_MS } from '../../../ledger/tasks/new-task.ts'
import type { VideoTask } from '../../../ledger/tasks/task.ts'
import type { PollAgain, TaskStore } from '../../../ledger/tasks/task-store.ts'
import type { LineClients, ReadOutcome } from './line-client.ts'
import { PollSlots } from './poll-slots.ts'
import { TaskUpkeep } from './task-upkeep.ts'

/** Options of {@link TaskSettler}. Times are milliseconds. */
export interface TaskSettlerOptions {
  /** The store of the tasks. Each process that shares it may run a settler: only one of them polls a task at a time. */
  store: TaskStore
  /** Returns the client of a line; undefined if the config no longer has the line. */
  clients: LineClients
  /** The name of this process. Defaults to a random one. */
  owner?: string
  /** Most tasks polled at a time; a quarter of them where a line does not answer. Defaults to 8. */
  concurrency?: number
  /** The shortest time between two polls of a task, while it is new. Defaults to 2000. */
  shortestPollMs?: number
  /** The longest time between two polls of a task, from ten times that age on. Defaults to 60000. */
  longestPollMs?: number
  /** How long a line may take to answer. Defaults to 10000. */
  timeoutMs?: number
  /** How often the store is asked for tasks that are due. Defaults to 1000. */
  pollMs?: number
  /** How long a task is kept after its end. Defaults to 30 days. */
  keepTasksMs?: number
  /** Logs unresolved and expired tasks, and outages. Defaults to the console. */
  logger?: Logger
}

const aNumberFrom1 = aWholeNumber('a positive whole number', 1)
const RULES: OptionRules<TaskSettlerOptions> = {
  store: required(anObjectWith('a TaskStore, such as a MemoryTaskStore', 'claimDue')),
  clients: required(aFunction('a function that returns the client of a line')),
  owner: aString(),
  concurrency: aNumberFrom1,
  shortestPollMs: aNumberFrom1,
  longestPollMs: aNumberFrom1,
  timeoutMs: someMilliseconds,
  pollMs: someMilliseconds,
  keepTasksMs: aNumberFrom1,
  logger: aLogger,
}

/** The time that a claim lasts beyond a poll, to write the result. If the process dies, another one polls soon. */
const CLAIM_SPARE_MS = 20_000
/** The longest wait that a line may ask for. */
const MAX_WAIT_MS = 3_600_000
/** The outcome for a task whose turn comes later. */
const PUT_OFF: ReadOutcome = { kind: 'away', code: 'upstream_error', upstreamStatus: null, detail: null }

/**
 * Polls all tasks that have not ended, so that each is charged when it succeeds and its hold is released when it fails.
 * All state is in the store: after a restart the settler continues.
 *
 * @throws TypeError at construction if an option is invalid.
 * @example
 * const video = videoEndpoints({ tasks, lines: new LineAccess({ catalog }) })
 * const settler = new TaskSettler({ store: tasks, clients: video.clients })
 * // at shutdown
 * await settler.close()
 */
export class TaskSettler {
  readonly #store: TaskStore
  readonly #clients: LineClients
  readonly #settings: ReturnType<typeof withDefaults>
  readonly #logger: Logger
  readonly #outage: Outage
  readonly #closing = new AbortController()
  readonly #polls = new Set<Promise<void>>()
  /** The lines that the config did not have when they were last needed. */
  readonly #unknownLines = new Set<string>()
  readonly #slots: PollSlots
  /** Runs beside the polls, which must not wait for a task that cannot be written. */
  readonly #upkeep: TaskUpkeep
  readonly #rounds: BackgroundLoop

  constructor(options: TaskSettlerOptions) {
    checkOptions('TaskSettler', options, RULES)
    this.#settings = withDefaults(options)
    this.#slots = new PollSlots(this.#settings.concurrency)
    this.#store = boundedStore('video tasks', options.store)
    this.#clients = options.clients
    this.#logger = quietLogger(options.logger)
    this.#outage = new Outage({
      store: 'video tasks',
      effect: 'videos are polled and charged later',
      logger: this.#logger,
    })
    this.#upkeep = new TaskUpkeep(this.#store, this.#settings.keepTasksMs, this.#logger)
    this.#rounds = new BackgroundLoop(() => this.#runRound(), this.#settings.pollMs, 0)
  }

  /** Aborts running polls and gives their tasks back. Never rejects. */
  async close(): Promise<void> {
    this.#closing.abort()
    await this.#rounds.close()
    await this.#upkeep.ended()
    await Promise.all(this.#polls)
  }

  async #runRound(): Promise<void> {
    const free = this.#settings.concurrency - this.#polls.size
    let started = 0
    this.#upkeep.begin()
    try {
      const now = Date.now()
      if (free > 0) started = await this.#pollDue(free)
      if (started < free) void Promise.all(this.#polls).then(() => this.#upkeep.notePolled(now))
      this.#outage.ends()
    } catch (error) {
      this.#outage.begins(error)
    }
    // If more tasks may be due, continue as soon as a poll has ended.
    if (started === 0 || started < free) return
    if (this.#polls.size === 0) this.#rounds.runIn(0)
    else void Promise.race(this.#polls).then(() => this.#rounds.runIn(0))
  }

  async #pollDue(limit: number): Promise<number> {
    const { owner, claimMs, longestPollMs } = this.#settings
    const now = Date.now()
    const latest = now + Math.max(2 * longestPollMs, MAX_WAIT_MS, claimMs)
    const due = await this.#store.claimDue({ owner, now, until: now + claimMs, latest, limit })
    for (const task of due) {
      const poll = this.#poll(task).finally(() => this.#polls.delete(poll))
      this.#polls.add(poll)
    }
    return due.length
  }

  async #poll(task: VideoTask): Promise<void> {
    const release = this.#slots.take(task)
    try {
      const outcome = release ? await this.#read(task) : PUT_OFF
      if (release) this.#slots.answered(task, outcome.kind !== 'away')
      const now = Date.now()
      const poll = { owner: this.#settings.owner, next: now + this.#pauseOf(task, now) }
      if (outcome.kind !== 'away') await this.#observe(task, outcome, now, poll)
      else {
        const { retryAfterMs = 0 } = outcome
        const handedBack = this.#closing.signal.aborted
        const next = handedBack ? now : Math.max(poll.next, now + Math.min(retryAfterMs, MAX_WAIT_MS))
        await this.#store.postpone(task.id, { ...poll, next })
      }
    } catch (error) {
      // The task is due again when its claim ends.
      this.#logger.error({ err: error, task: task.id, line: task.line }, 'a video task could not be polled')
    } finally {
      release?.()
    }
  }

  async #observe(
    task: VideoTask,
    outcome: Exclude<ReadOutcome, { kind: 'away' }>,
    at: number,
    poll: PollAgain,
  ): Promise<void> {
    const observation = outcome.kind === 'answered' ? outcome.observation : ({ state: 'missing' } as const)
    let isWritten = false
    try {
      await this.#store.observe(task.id, observation, at, poll)
      isWritten = true
    } finally {
      this.#slots.written(task, isWritten)
    }
  }

  async #read(task: VideoTask): Promise<ReadOutcome> {
    const client = this.#clients(task.line)
    if (!client) {
      this.#logUnknownLine(task)
      return { kind: 'away', code: 'upstream_error', upstreamStatus: null, detail: 'no such line' }
    }
    this.#unknownLines.delete(task.line)
    const { timeoutMs } = this.#settings
    return client.read(task, AbortSignal.any([this.#closing.signal, AbortSignal.timeout(timeoutMs)]))
  }

  /**
   * Returns the time until the next poll, which grows with the age. It is random, so that tasks created together drift
   * apart.
   */
  #pauseOf({ createdAt }: VideoTask, now: number): number {
    const { shortestPollMs, longestPollMs } = this.#settings
    const pause = Math.min(longestPollMs, Math.max(shortestPollMs, (now - createdAt) / 10))
    return Math.round(pause * (0.9 + 0.2 * Math.random()))
  }

  #logUnknownLine({ line, id }: VideoTask): void {
    if (this.#unknownLines.has(line)) return
    this.#unknownLines.add(line)
    this.#logger.error({ line, task: id }, 'there are video tasks on a line that the config does not have')
  }
}

function withDefaults(options: TaskSettlerOptions) {
  const { owner = randomUUID(), concurrency = 8 } = options
  const {
    shortestPollMs = FIRST_POLL_MS,
    longestPollMs = 60_000,
    timeoutMs = 10_000,
    pollMs = 1000,
  } = options
  const { keepTasksMs = 30 * 86_400_000 } = options
  const numbers = { concurrency, shortestPollMs, longestPollMs, timeoutMs, pollMs, keepTasksMs }
  return { owner, ...numbers, claimMs: timeoutMs + CLAIM_SPARE_MS }
}
