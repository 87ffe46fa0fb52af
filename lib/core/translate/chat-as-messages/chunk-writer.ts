import type { JsonObject, TranslatedUsage } from '../translation.ts'
import { chatUsage } from '../usage.ts'

/** Writes the chunks of one OpenAI-style stream, each as a whole event. */
export class ChatChunkWriter {
  readonly #created: number
  readonly #tellsUsage: boolean
  /** What stands before the choices in every chunk; empty until the stream has begun. */
  #before = ''
  readonly #after: string

  /**
   * @param created seconds since 1970.
   * @param tellsUsage whether the caller asked for a last chunk with the usage; then all others say that they have none.
   */
  constructor(created: number, tellsUsage: boolean) {
    this.#created = created
    this.#tellsUsage = tellsUsage
    this.#after = tellsUsage ? '],"usage":null}\n\n' : ']}\n\n'
  }

  get begun(): boolean {
    return this.#before !== ''
  }

  /** The first chunk, which tells the role; nothing where it has been written. */
  begin({ id, model }: JsonObject = {}): string {
    if (this.begun) return ''
    const head = JSON.stringify({
      id: typeof id === 'string' && id !== '' ? id : `chatcmpl-${this.#created}`,
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

  /** A delta of one text member; nothing for an empty text. */
  text(member: string, text: string): string {
    return text === '' ? '' : this.#choice(`{"${member}":${JSON.stringify(text)}}`, 'null')
  }

  /** A piece of the arguments of a tool call. */
  arguments(call: number, text: string): string {
    const fn = `{"arguments":${JSON.stringify(text)}}`
    return this.#choice(`{"tool_calls":[{"index":${call},"function":${fn}}]}`, 'null')
  }

  /** Why the answer stopped, its usage where that was asked for, and the last event. */
  end(finishReason: string, usage: TranslatedUsage): string {
    const counts = this.#tellsUsage ? chatUsage(usage) : undefined
    const usageChunk = counts ? `${this.#before}],"usage":${JSON.stringify(counts)}}\n\n` : ''
    return `${this.#choice('{}', JSON.stringify(finishReason))}${usageChunk}data: [DONE]\n\n`
  }

  #choice(delta: string, finishReason: string): string {
    return `${this.#before}{"index":0,"delta":${delta},"finish_reason":${finishReason}}${this.#after}`
  }
}
