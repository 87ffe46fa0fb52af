import { createHash } from 'node:crypto'
import type { Limit, LimitKind } from './limit-store.ts'

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
