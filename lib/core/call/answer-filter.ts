/** Checks answers before their caller gets them, and may change them. */
export interface AnswerFilter {
  /** The name of the guard, or the names of several. */
  readonly name: string
  /**
   * Returns a whole answer as the caller gets it.
   *
   * @param type its media type.
   * @throws {GatewayError} (as a rejection) if the caller must not get it.
   */
  whole(answer: string, type: string): Promise<string>
  /** Returns a filter of one stream of events. */
  stream(): StreamFilter
}

/** Checks one stream of events. */
export interface StreamFilter {
  /**
   * Takes what comes next of the stream.
   *
   * @returns what the caller can get now; empty if that has to wait for more.
   * @throws {GatewayError} (as a rejection) if the caller must not get any more.
   */
  push(bytes: Buffer): Promise<Buffer>
  /** Takes the last part of the stream. Returns everything that the caller has not got yet. */
  end(bytes: Buffer): Promise<Buffer>
}

/** Returns the filters of a call as one; undefined if there are none. */
export function joinedFilter(filters: readonly AnswerFilter[]): AnswerFilter | undefined {
  const [first, ...others] = filters
  if (!first) return undefined
  if (others.length === 0) return first
  return {
    name: filters.map(({ name }) => name).join(' '),
    async whole(answer, type) {
      let text = answer
      for (const filter of filters) text = await filter.whole(text, type)
      return text
    },
    stream() {
      const streams = filters.map((filter) => filter.stream())
      return {
        async push(bytes) {
          let passed = bytes
          for (const stream of streams) if (passed.length > 0) passed = await stream.push(passed)
          return passed
        },
        async end(bytes) {
          let passed = bytes
          for (const stream of streams) passed = await stream.end(passed)
          return passed
        },
      }
    },
  }
}

/** The decision of a guard about a call. Written by `guard`; it never has the text. */
export interface GuardTrace {
  readonly guard: string
  readonly on: 'input' | 'output'
  /** The gravest of its decisions; `failed` if it threw or took too long. */
  decision: 'allowed' | 'replaced' | 'refused' | 'failed'
  /** How many texts or windows it has checked. */
  checks: number
  /** Milliseconds, of all checks. */
  durationMs: number
}
