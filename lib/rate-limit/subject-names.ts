/** What a subject is called in a store. */
export interface SubjectNames {
  readonly sender: string
  readonly rpm: string
  readonly tpm: string
  readonly concurrency: string
}

/** Subjects remembered; more than that and all are forgotten, which costs time and nothing else. */
const MOST = 20_000

/** Names of the subjects of one level, put together once: a string that was looked up before is found faster. */
export class NamesOfLevel {
  readonly #level: string
  readonly #known = new Map<string, SubjectNames>()

  constructor(level: string) {
    this.#level = level
  }

  of(subject: string): SubjectNames {
    const known = this.#known.get(subject)
    if (known) return known
    const sender = `${this.#level}:${subject}`
    const names = { sender, rpm: `rpm:${sender}`, tpm: `tpm:${sender}`, concurrency: `concurrency:${sender}` }
    if (this.#known.size >= MOST) this.#known.clear()
    this.#known.set(subject, names)
    return names
  }
}
