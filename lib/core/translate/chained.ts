import { readFrame } from '../protocols/index.ts'
import { isObject, parseObject } from './parts/json-object.ts'
import {
  type AnswerContext,
  type JsonObject,
  type RequestContext,
  type StreamTranslator,
  type TranslatedUsage,
  type Translation,
  Untranslatable,
} from './translation.ts'

/** What a translation does, whichever endpoints it stands between. */
export type Passage = Pick<Translation, 'request' | 'answer' | 'stream'>

/**
 * Two translations as one, by way of a chat: from an endpoint to chat completions, and from there to the line's.
 *
 * @param members the endpoint's word for each member of a chat request that a refusal may name.
 */
export function chained(outer: Passage, inner: Passage, members: Readonly<Record<string, string>>): Passage {
  return {
    request: (json, context) => requestBy(outer, inner, members, json, context),
    answer(json, usage, context) {
      const chat = inner.answer(json, usage, chatContext(context))
      const told = outer.answer(chat.body, usage, context)
      return { body: told.body, skipped: chat.skipped + told.skipped }
    },
    stream: (context) => new ChainedStream(outer.stream(context), inner.stream(chatContext(context))),
  }
}

function requestBy(
  outer: Passage,
  inner: Passage,
  members: Readonly<Record<string, string>>,
  json: JsonObject,
  context: RequestContext,
): JsonObject {
  const chat = outer.request(json, context)
  try {
    return inner.request(chat, context)
  } catch (error) {
    if (!(error instanceof Untranslatable)) throw error
    const [member = ''] = error.param.split(/[.[]/, 1)
    const named = Object.hasOwn(members, member) ? members[member] : undefined
    throw named === undefined ? error : new Untranslatable(named)
  }
}

/** The usage of the chat tells how much of the output was thought. */
const chatContext = ({ created }: AnswerContext): AnswerContext => ({
  created,
  request: { stream_options: { include_usage: true } },
})

/** A stream that is translated twice. */
class ChainedStream implements StreamTranslator {
  readonly #outer: StreamTranslator
  readonly #inner: StreamTranslator

  constructor(outer: StreamTranslator, inner: StreamTranslator) {
    this.#outer = outer
    this.#inner = inner
  }

  get textMember(): string | undefined {
    return this.#inner.textMember === undefined ? undefined : this.#outer.textMember
  }

  get skipped(): number {
    return this.#outer.skipped + this.#inner.skipped
  }

  push(json: object | undefined): string {
    return this.#tell(this.#inner.push(json))
  }

  copied(delta: string): void {
    this.#inner.copied(delta)
    this.#outer.copied(delta)
  }

  end(usage: TranslatedUsage): string {
    return this.#tell(this.#inner.end(usage)) + this.#outer.end(usage)
  }

  #tell(chat: string): string {
    let events = ''
    for (const frame of chat.split('\n\n')) {
      if (frame === '') continue
      const { data } = readFrame(frame)
      const chunk = parseObject(data)
      // The last event of a chat says nothing; a comment does keep the caller's connection alive.
      if (isObject(chunk) || data === '') events += this.#outer.push(chunk)
    }
    return events
  }
}
