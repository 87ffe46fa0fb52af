import type { Limit, LimitKind } from './limit-store.ts'

/** A subject of one level: what it is called in a store, and its limits as they were last. */
export class Subject {
  readonly sender: string
  readonly #level: string
  readonly #subject: string
  #rpm: Limit
  #tpm: Limit
  #concurrency: Limit

  constructor(level: string, subject: string) {
    this.sender = `${level}:${subject}`
    this.#level = level
    this.#subject = subject
    this.#rpm = this.#limit('rpm', 0, 0, `rpm:${this.sender}`)
    this.#tpm = this.#limit('tpm', 0, 0, `tpm:${this.sender}`)
    this.#concurrency = this.#limit('concurrency', 0, 0, `concurrency:${this.sender}`)
  }

  /** The same object as long as nothing changes. */
  rpm(most: number): Limit {
    if (most !== this.#rpm.most || this.#rpm.cost !== 1)
      this.#rpm = this.#limit('rpm', most, 1, this.#rpm.key)
    return this.#rpm
  }

  /** The same object as long as nothing changes. */
  tpm(most: number, cost: number): Limit {
    if (most !== this.#tpm.most || cost !== this.#tpm.cost)
      this.#tpm = this.#limit('tpm', most, cost, this.#tpm.key)
    return this.#tpm
  }

  /** The same object as long as nothing changes. */
  concurrency(most: number): Limit {
    if (most !== this.#concurrency.most || this.#concurrency.cost !== 1)
      this.#concurrency = this.#limit('concurrency', most, 1, this.#concurrency.key)
    return this.#concurrency
  }

  #limit(kind: LimitKind, most: number, cost: number, key: string): Limit {
    return { kind, level: this.#level, subject: this.#subject, most, cost, key }
  }
}

/** Subjects remembered; more than that and all are forgotten, which costs time and nothing else. */
const MOST = 20_000

/** The subjects of one level, put together once: a string that was looked up before is found faster. */
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
    if (this.#known.size >= MOST) this.#known.clear()
    this.#known.set(subject, made)
    return made
  }
}
