import { type JsonObject, nonEmptyString } from '../../json/index.ts'
import { chatUsage } from '../answers/usage.ts'
import type { TranslatedUsage } from '../translation.ts'

/** Writes the chunks of one OpenAI-style stream, each as a complete event. */
export class ChatChunkWriter {
  readonly #created: number
  readonly #includesUsage: boolean
  /** The JSON before the choices, the same in each chunk; empty until the stream has begun. */
  #before = ''
  /** The JSON behind the choices. */
  readonly #after: string

  /**
   * @param created when the answer was made, in seconds since 1970.
   * @param includesUsage whether the caller asked for a last chunk with the usage; all others then hold `"usage": null`.
   */
  constructor(created: number, includesUsage: boolean) {
    this.#created = created
    this.#includesUsage = includesUsage
    this.#after = includesUsage ? '],"usage":null}\n\n' : ']}\n\n'
  }

  get begun(): boolean {
    return this.#before !== ''
  }

  /** Returns the first chunk, which holds the role; '' if it has been written. */
  begin({ id, model }: JsonObject = {}): string {
    if (this.begun) return ''
    const head = JSON.stringify({
      id: nonEmptyString(id) ?? `chatcmpl-${this.#created}`,
      object: 'chat.completion.chunk',
      created: this.#created,
      model: typeof model === 'string' ? model : '',
    })
    this.#before = `data: ${head.slice(0, -1)},"choices":[`
    return this.delta({ role: 'assistant', content: '' })
  }

  delta(delta: JsonObject): string {
    return this.#choice(JSON.stringify(delta), 'null')
  }

  /** Returns a chunk with one text member; '' for an empty text. */
  text(member: string, text: string): string {
    return text === '' ? '' : this.#choice(`{"${member}":${JSON.stringify(text)}}`, 'null')
  }

  /** Returns a chunk with a piece of the arguments of a tool call. */
  arguments(call: number, text: string): string {
    const fn = `{"arguments":${JSON.stringify(text)}}`
    return this.#choice(`{"tool_calls":[{"index":${call},"function":${fn}}]}`, 'null')
  }

  /** Returns the finish reason, the usage if the caller asked for it, and the last event. */
  end(finishReason: string, usage: TranslatedUsage): string {
    const counts = this.#includesUsage ? chatUsage(usage) : undefined
    const usageChunk = counts ? `${this.#before}],"usage":${JSON.stringify(counts)}}\n\n` : ''
    return `${this.#choice('{}', JSON.stringify(finishReason))}${usageChunk}data: [DONE]\n\n`
  }

  #choice(delta: string, finishReason: string): string {
    return `${this.#before}{"index":0,"delta":${delta},"finish_reason":${finishReason}}${this.#after}`
  }
}
