import type { Call } from '../../../core/call/index.ts'
import type { KeptName } from '../../../core/operations/index.ts'

/**
 * Records which line keeps what of an answer, before the caller learns the ids. Later requests that name one of them then
 * find the line, in any process.
 */
export class AnswerKeeping {
  readonly #call: Call
  readonly #line: string
  /** How many things were recorded before the head. */
  #noted = 0

  /** @param line the id of the line that answers. */
  constructor(call: Call, line: string) {
    this.#call = call
    this.#line = line
  }

  /** Records the answer before the head of a stream. Its usage is unknown; the tokens produced so far stand in. */
  beforeHead(made: readonly KeptName[], producedTokens: number): Promise<void> | undefined {
    const { request } = this.#call
    this.#noted = made.length
    return this.#note(made, (request?.estimatedInputTokens ?? 0) + producedTokens)
  }

  /** Records the answer before its end goes out. */
  beforeEnd(made: readonly KeptName[]): Promise<void> | undefined {
    const { usage } = this.#call
    const noting = this.#note(made, usage ? usage.inputTokens + usage.outputTokens : 0)
    if (made.length > this.#noted) return noting
    // Only the size is new, so the end need not wait. The store's guard logs errors.
    noting?.catch(() => {})
    return undefined
  }

  #note(made: readonly KeptName[], tokens: number): Promise<void> | undefined {
    return this.#call.keepAnswer?.({ made, line: this.#line, tokens })
  }
}
