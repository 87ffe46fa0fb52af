import { type CallLogEntry, isRead } from '../../core/call/index.ts'
import type { ErrorCode } from '../../core/errors/index.ts'
import { shareOfEntry, type UsageShare } from '../../core/usage/index.ts'

/** How many entries a subject may have: `burst` at once, and one more each `everyMs`. */
interface Allowance {
  readonly subject: string
  readonly burst: number
  readonly everyMs: number
}

interface Subject extends Allowance {
  left: number
  refilledAt: number
  /** The last entry that was not written, and how many more. */
  waiting: CallLogEntry | undefined
  count: number
}

const TICK_MS = 1000
const MAX_SUBJECTS = 10_000

/**
 * A writer of entries in front of another one, which keeps calls that cost nothing from filling the log:
 *
 * - look-ups, such as a client that polls: one entry a minute for each key and kind of path;
 * - refused and failed calls, but for those that lines failed: 100 for each key and error at once, then five a second;
 * - free calls that succeed, such as counts of tokens: the same for each key;
 * - calls without a valid key: 50 for each error at once, then one a second, for all senders together.
 *
 * Calls beyond that share an entry: `repeats` says for how many more it stands. Calls that were charged, or used something,
 * always have their own. So do those with an Idempotency-Key, whose entry has the answer for a repetition: beyond that, it has no
 * user and tags, which take more than the rest. Those that share one are alike in how they ended, and in whether usage counts
 * them by their entry.
 *
 * @example
 * const entries = new CoalescedEntries(writer)
 * app.use(beginCall(), callLog({ writer: entries }))
 */
export class CoalescedEntries {
  readonly #writer: { add(entry: CallLogEntry): void }
  readonly #subjects = new Map<string, Subject>()
  #timer: NodeJS.Timeout | undefined

  /** @param writer such as a `CallLogWriter`. Close it after this one. */
  constructor(writer: { add(entry: CallLogEntry): void }) {
    this.#writer = writer
  }

  add(entry: CallLogEntry): void {
    const allowance = allowanceOf(entry)
    if (!allowance) {
      this.#writer.add(entry)
      return
    }
    const subject = this.#subjectOf(allowance)
    const now = performance.now()
    if (isRepeatable(entry)) {
      this.#writer.add(take(subject, now) ? entry : withoutLabels(entry))
      return
    }
    subject.count += subject.waiting ? 1 : 0
    subject.waiting = entry
    this.#write(subject, now)
  }

  /** Writes what waits. */
  close(): void {
    clearInterval(this.#timer)
    for (const { waiting, count } of this.#subjects.values())
      if (waiting) this.#writer.add(shared(waiting, count))
    this.#subjects.clear()
  }

  #subjectOf(allowance: Allowance): Subject {
    const known = this.#subjects.get(allowance.subject)
    if (known) return known
    if (this.#subjects.size >= MAX_SUBJECTS) this.#forgetOldest()
    const made = {
      ...allowance,
      left: allowance.burst,
      refilledAt: performance.now(),
      waiting: undefined,
      count: 0,
    }
    this.#subjects.set(allowance.subject, made)
    if (this.#subjects.size === 1) this.#timer = setInterval(() => this.#tick(), TICK_MS).unref()
    return made
  }

  /** A new entry replaces one old entry: writing all at once would fill the writer's queue, and it would drop others. */
  #forgetOldest(): void {
    const [oldest] = this.#subjects.values()
    if (!oldest) return
    this.#subjects.delete(oldest.subject)
    if (oldest.waiting) this.#writer.add(shared(oldest.waiting, oldest.count))
  }

  /** Writes the entry that waits, if its subject may have one. */
  #write(subject: Subject, now: number): void {
    refill(subject, now)
    if (!subject.waiting || !take(subject, now)) return
    this.#writer.add(shared(subject.waiting, subject.count))
    subject.waiting = undefined
    subject.count = 0
  }

  #tick(): void {
    const now = performance.now()
    for (const subject of this.#subjects.values()) {
      this.#write(subject, now)
      if (subject.left === subject.burst) this.#subjects.delete(subject.subject)
    }
    if (this.#subjects.size === 0) clearInterval(this.#timer)
  }
}

function refill(subject: Subject, now: number): void {
  const refills = Math.floor((now - subject.refilledAt) / subject.everyMs)
  subject.left = Math.min(subject.burst, subject.left + refills)
  subject.refilledAt += refills * subject.everyMs
}

/** Takes one of the entries that a subject may have. Returns false if there is none. */
function take(subject: Subject, now: number): boolean {
  refill(subject, now)
  if (subject.left === 0) return false
  subject.left--
  return true
}

/** Whether a repetition of the call is answered with its entry. */
function isRepeatable({ method, outcome, idempotency_key }: CallLogEntry): boolean {
  return !isRead(method) && outcome === 'completed' && idempotency_key !== null
}

function withoutLabels(entry: CallLogEntry): CallLogEntry {
  return { ...entry, user: null, tags: {} }
}

function shared(entry: CallLogEntry, repeats: number): CallLogEntry {
  return repeats === 0 ? entry : { ...entry, repeats }
}

/** The codes of calls that lines failed. Whatever callers can provoke for nothing is not among them. */
const FAULTS_OF_LINES: ReadonlySet<ErrorCode> = new Set([
  'all_candidates_failed',
  'empty_completion',
  'upstream_error',
  'upstream_overloaded',
  'upstream_rate_limited',
  'upstream_timeout',
])

/** Returns how many entries such calls may have; undefined if each has its own. */
function allowanceOf(entry: CallLogEntry): Allowance | undefined {
  const { key, method, path, status, outcome, error_code: code, billing, routing } = entry
  if (billing !== null && billing.charged !== null && billing.charged !== '0') return undefined
  if (key !== null && outcome === 'completed' && status === 200 && isRead(method) && !billing?.charged)
    return { subject: `${key} ${kindOf(path)}`, burst: 1, everyMs: 60_000 }
  // A caller looks up each such call by its request id, to see what the lines did.
  if (key !== null && code && FAULTS_OF_LINES.has(code) && routing && routing.attempts.length > 0)
    return undefined
  const share = shareOfEntry(entry)
  if (share && hasUsed(share)) return undefined
  const alike = `${outcome} ${code ?? status} ${share !== undefined}`
  return key === null
    ? { subject: alike, burst: 50, everyMs: 1000 }
    : { subject: `${key} ${alike}`, burst: 100, everyMs: 200 }
}

function hasUsed({ inputTokens, outputTokens, images, seconds, cost }: UsageShare): boolean {
  return cost > 0n || inputTokens + outputTokens + images + seconds > 0
}

/** Returns a path without ids: `/v1/calls` or `/api/v3/contents/generations/tasks`. Routes take letters of either case. */
function kindOf(path: string): string {
  const same = path.toLowerCase()
  return same.split('/', same.startsWith('/api/') ? 6 : 3).join('/')
}
