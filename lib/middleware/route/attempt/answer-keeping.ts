import type { Call } from '../../../core/call/index.ts'

/**
 * Has an answer noted that its line keeps, before the caller learns its id: whatever asks for it by that id then finds
 * the line, in any process.
 */
export class AnswerKeeping {
  readonly #call: Call
  readonly #line: string
  #notedId: string | undefined

  /** @param line the line that gives the answer. */
  constructor(call: Call, line: string) {
    this.#call = call
    this.#line = line
  }

  /** What the head of a stream has to wait for; its usage is not known yet, only what was produced so far. */
  beforeHead(keptId: string, producedTokens: number): Promise<void> | undefined {
    const { request } = this.#call
    return this.#note(keptId, (request?.estimatedInputTokens ?? 0) + producedTokens)
  }

  /** What the end of an answer has to wait for. */
  beforeEnd(keptId: string): Promise<void> | undefined {
    const { usage } = this.#call
    const isNoted = keptId === this.#notedId
    const noting = this.#note(keptId, usage ? usage.inputTokens + usage.outputTokens : 0)
    if (!isNoted) return noting
    // Only its size is new. Who keeps answers tells what goes wrong.
    noting?.catch(() => {})
    return undefined
  }

  #note(id: string, tokens: number): Promise<void> | undefined {
    this.#notedId = id
    return this.#call.keepAnswer?.({ id, line: this.#line, tokens })
  }
}
