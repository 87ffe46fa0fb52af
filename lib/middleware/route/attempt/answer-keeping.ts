import type { Call } from '../../../core/call/index.ts'

/**
 * Records which line stores an answer, before the caller learns the answer's id. Later requests for that id then find
 * the line, in any process.
 */
export class AnswerKeeping {
  readonly #call: Call
  readonly #line: string
  #notedId: string | undefined

  /** @param line the id of the line that stores the answer. */
  constructor(call: Call, line: string) {
    this.#call = call
    this.#line = line
  }

  /** Records the answer before the head of a stream. Its usage is unknown; the tokens produced so far stand in. */
  beforeHead(keptId: string, producedTokens: number): Promise<void> | undefined {
    const { request } = this.#call
    return this.#note(keptId, (request?.estimatedInputTokens ?? 0) + producedTokens)
  }

  /** Records the answer before its end goes out. */
  beforeEnd(keptId: string): Promise<void> | undefined {
    const { usage } = this.#call
    const isNoted = keptId === this.#notedId
    const noting = this.#note(keptId, usage ? usage.inputTokens + usage.outputTokens : 0)
    if (!isNoted) return noting
    // Only the size is new, so the end need not wait. The store's guard logs errors.
    noting?.catch(() => {})
    return undefined
  }

  #note(id: string, tokens: number): Promise<void> | undefined {
    this.#notedId = id
    return this.#call.keepAnswer?.({ id, line: this.#line, tokens })
  }
}
