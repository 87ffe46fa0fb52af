import { createHash } from 'node:crypto'
import type { Request } from 'express'
import type { Call } from '../../core/call/index.ts'
import { kindOf } from '../../core/options/index.ts'
import { accountLevel, keyLevel, type LimitLevel, type LimitValue, type OfRequest } from './limit-levels.ts'
import type { Demand, Limit, LimitKind } from './limit-store.ts'

/** Where the caller's principal has what a level of the toolkit asks for. */
interface OfPrincipal {
  readonly subject: 'keyId' | 'accountId'
  readonly limits: 'keyLimits' | 'accountLimits'
}

const OF_KEY: OfPrincipal = { subject: 'keyId', limits: 'keyLimits' }
const OF_ACCOUNT: OfPrincipal = { subject: 'accountId', limits: 'accountLimits' }

/** A level of a middleware. */
export interface PlannedLevel {
  readonly level: LimitLevel
  readonly subjects: SubjectsOfLevel
  /** Its functions need not be called then. */
  readonly own?: OfPrincipal | undefined
}

/** Prepares a level for all demands of a middleware. */
export function planned(level: LimitLevel): PlannedLevel {
  const own = level === keyLevel ? OF_KEY : level === accountLevel ? OF_ACCOUNT : undefined
  return { level: { ...level }, subjects: new SubjectsOfLevel(level.name), own }
}

/** The settings that all demands of one middleware share. */
export interface DemandPlan {
  readonly levels: readonly PlannedLevel[]
  /** Undefined: those that `readRequest` has estimated. */
  readonly tokens: ((req: Request, call: Call) => number | Promise<number>) | undefined
  readonly windowMs: number
}

const NO_SLOTS: readonly Limit[] = []

/** Stands for a demand that {@link demandLater} returns, because a function of the plan has returned a promise. */
export const LATER: Demand = { id: '', sender: '', windowMs: 0, charges: [], slots: [] }
/** Stands for a limit that is a promise. */
const AWAITED = -1

/** Returns the demand of a request; undefined if no limit applies, {@link LATER} if a function returns a promise. */
export function demandOf(plan: DemandPlan, req: Request, call: Call): Demand | undefined {
  const { levels, windowMs } = plan
  const { principal } = call
  // Allocated at its largest length: a growing array takes far more memory.
  const charges = new Array<Limit>(2 * levels.length)
  let charged = 0
  let slots = NO_SLOTS
  let first: Subject | undefined
  let others = ''
  let tokens: number | undefined
  for (let i = 0; i < levels.length; i++) {
    const { level, subjects, own } = levels[i] as PlannedLevel
    const name = own ? principal?.[own.subject] : level.by(req, call)
    if (name === null || name === undefined) continue
    if (typeof name !== 'string') {
      if (isPromise(name)) return LATER
      throw new TypeError(
        `rateLimit: "by" of the level "${level.name}" must return a string, null or undefined, not ${kindOf(name)}`,
      )
    }
    const subject = subjects.of(name)
    if (!first) first = subject
    else others = others === '' ? subject.sender : `${others} ${subject.sender}`
    const limits: Omit<LimitLevel, 'name' | 'by'> = own && principal ? principal[own.limits] : level
    const rpm = maxOf(limits.rpm, req, call)
    if (rpm === AWAITED) return LATER
    if (rpm !== undefined) charges[charged++] = subject.limit('rpm', rpm, 1)
    const tpm = maxOf(limits.tpm, req, call)
    if (tpm === AWAITED) return LATER
    if (tpm !== undefined) {
      if (tokens === undefined) {
        const told = plan.tokens ? plan.tokens(req, call) : (call.request?.estimatedInputTokens ?? 0)
        if (typeof told !== 'number' && isPromise(told)) return LATER
        tokens = Number.isSafeInteger(told) && told >= 0 ? told : whole(told)
      }
      charges[charged++] = subject.limit('tpm', tpm, tokens)
    }
    const concurrency = own === OF_KEY ? undefined : maxOf(limits.concurrency, req, call)
    if (concurrency === AWAITED) return LATER
    if (concurrency !== undefined) {
      const slot = subject.limit('concurrency', concurrency, 1)
      slots = slots === NO_SLOTS ? [slot] : [...slots, slot]
    }
  }
  if (!first || charged + slots.length === 0) return undefined
  charges.length = charged
  return { id: call.id, sender: first.senderWith(others), windowMs, charges, slots }
}

/** Returns a limit that the demand can never pass, however long it waits. */
export function impossibleLimit({ charges, slots }: Demand): Limit | undefined {
  for (let i = 0; i < charges.length; i++) {
    const limit = charges[i] as Limit
    if (limit.cost > limit.max) return limit
  }
  for (let i = 0; i < slots.length; i++) {
    const limit = slots[i] as Limit
    if (limit.cost > limit.max) return limit
  }
  return undefined
}

function maxOf(limit: OfRequest<LimitValue>, req: Request, call: Call): number | undefined {
  const max = typeof limit === 'function' ? limit(req, call) : limit
  if (max === null || max === undefined || max === Number.POSITIVE_INFINITY) return undefined
  // Digits in a string, as databases return them, would pass here and fail a whole batch in a store.
  if (typeof max === 'number' && max >= 0) return max
  if (isPromise(max)) return AWAITED
  throw new TypeError(`rateLimit: a limit must be a number from 0 up, not ${kindOf(max)}`)
}

function whole(tokens: number): number {
  if (typeof tokens !== 'number' || !(tokens >= 0 && tokens <= Number.MAX_SAFE_INTEGER))
    throw new TypeError(`rateLimit: "tokens" must return a number from 0 up, not ${kindOf(tokens)}`)
  return Math.ceil(tokens)
}

/** Whether a value is a promise. It is asked for once more, so its failure is nobody's here. */
function isPromise(value: unknown): value is Promise<unknown> {
  if (typeof (value as PromiseLike<unknown> | null)?.then !== 'function') return false
  ;(value as PromiseLike<unknown>).then(ignore, ignore)
  return true
}

function ignore(): void {}

/** A longer subject is named by its beginning and its hash, so that no caller decides how much memory a counter takes. */
const MAX_LENGTH = 128

/** A subject of one level. It reuses its last limit objects, so that a usual request makes none. */
export class Subject {
  readonly sender: string
  private rpm: Limit
  private tpm: Limit
  private concurrency: Limit
  /** The names of the other levels' subjects in the last request, and of all together. */
  private others = ''
  private joined: string

  constructor(level: string, subject: string) {
    this.sender = `${level}:${subject}`
    this.joined = this.sender
    const limit = (kind: LimitKind): Limit => {
      return { kind, level, subject, max: 0, cost: 0, key: `${kind}:${this.sender}` }
    }
    this.rpm = limit('rpm')
    this.tpm = limit('tpm')
    this.concurrency = limit('concurrency')
  }

  /** Returns the sender of a request that has this subject and those that `others` names. */
  senderWith(others: string): string {
    if (others !== this.others) {
      this.others = others
      this.joined = others === '' ? this.sender : `${this.sender} ${others}`
    }
    return this.joined
  }

  /** Returns a limit of the subject: the same object as last time if nothing has changed. */
  limit(kind: LimitKind, max: number, cost: number): Limit {
    const last = this[kind]
    if (last.max === max && last.cost === cost) return last
    const { level, subject, key } = last
    this[kind] = { kind, level, subject, max, cost, key }
    return this[kind]
  }
}

/** The largest number of subjects that a level remembers. Beyond it the level forgets all, which only costs time. */
const MAX_SUBJECTS = 20_000

/** The subjects of one level, each made once. */
export class SubjectsOfLevel {
  readonly #level: string
  readonly #known = new Map<string, Subject>()

  constructor(level: string) {
    this.#level = level
  }

  of(subject: string): Subject {
    const known = this.#known.get(subject)
    if (known) return known
    const made = new Subject(this.#level, shortened(subject))
    if (subject.length > MAX_LENGTH) return made
    if (this.#known.size >= MAX_SUBJECTS) this.#known.clear()
    this.#known.set(subject, made)
    return made
  }
}

function shortened(subject: string): string {
  if (subject.length <= MAX_LENGTH) return subject
  return `${subject.slice(0, MAX_LENGTH / 2)}…${createHash('sha256').update(subject).digest('base64url')}`
}
