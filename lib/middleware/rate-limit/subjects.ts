import type { Limit, LimitKind } from './limit-store.ts'

/** A subject of one level. Keeps its limits as they were last asked for, so that a usual request makes none anew. */
export class Subject {
  readonly sender: string
  private rpm: Limit
  private tpm: Limit
  private concurrency: Limit

  constructor(level: string, subject: string) {
    this.sender = `${level}:${subject}`
    const limit = (kind: LimitKind): Limit => {
      return { kind, level, subject, max: 0, cost: 0, key: `${kind}:${this.sender}` }
    }
    this.rpm = limit('rpm')
    this.tpm = limit('tpm')
    this.concurrency = limit('concurrency')
  }

  /** Returns a limit of the subject: the same object as last time where nothing has changed. */
  limit(kind: LimitKind, max: number, cost: number): Limit {
    const last = this[kind]
    if (last.max === max && last.cost === cost) return last
    const { level, subject, key } = last
    this[kind] = { kind, level, subject, max, cost, key }
    return this[kind]
  }
}

/** The most subjects that a level remembers. Beyond that it forgets all, which costs time and nothing else. */
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
    const made = new Subject(this.#level, subject)
    if (this.#known.size >= MAX_SUBJECTS) this.#known.clear()
    this.#known.set(subject, made)
    return made
  }
}
