interface Waiting<Asked, Answer> {
  readonly asked: Asked
  resolve(answer: Answer): void
  reject(error: unknown): void
}

/**
 * Asks a store about each key once at a time. Requests about a key that come while an answer is on its way are sent together
 * afterwards, so that a busy key costs few commands.
 */
export class Batcher<Asked, Answer> {
  readonly #ask: (key: string, asked: readonly Asked[]) => Promise<readonly Answer[]>
  /** The requests that wait, by the keys with an answer on its way. */
  readonly #waiting = new Map<string, Waiting<Asked, Answer>[]>()

  /** @param ask sends requests about a key. Resolves to their answers, in their order; rejects if all have failed. */
  constructor(ask: (key: string, asked: readonly Asked[]) => Promise<readonly Answer[]>) {
    this.#ask = ask
  }

  ask(key: string, asked: Asked): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const waiting = this.#waiting.get(key)
      if (waiting) waiting.push({ asked, resolve, reject })
      else void this.#send(key, [{ asked, resolve, reject }])
    })
  }

  async #send(key: string, group: readonly Waiting<Asked, Answer>[]): Promise<void> {
    const next: Waiting<Asked, Answer>[] = []
    this.#waiting.set(key, next)
    try {
      const answers = await this.#ask(
        key,
        group.map(({ asked }) => asked),
      )
      group.forEach(({ resolve }, i) => {
        resolve(answers[i] as Answer)
      })
    } catch (error) {
      for (const { reject } of group) reject(error)
    }
    if (next.length > 0) void this.#send(key, next)
    else this.#waiting.delete(key)
  }
}
