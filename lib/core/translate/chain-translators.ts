import { type JsonObject, parseJsonObject } from '../json/index.ts'
import { readFrame } from '../protocols/index.ts'
import {
  type AnswerContext,
  type RequestContext,
  refuse,
  type StreamTranslator,
  type TranslatedUsage,
  type Translator,
  Untranslatable,
} from './translation.ts'

/**
 * Joins two translators: from an endpoint to chat completions, and from there to the line's endpoint.
 *
 * @param members the endpoint's name for each member of a chat request that a refusal may name.
 * @param format returns the member of the chat request that answers depend on.
 */
export function chainTranslators(
  outer: Translator,
  inner: Translator,
  members: Readonly<Record<string, string>>,
  format: FormatOf,
): Translator {
  return {
    request: (json, context) => translateRequest(outer, inner, members, json, context),
    answer(json, usage, context) {
      const chat = inner.answer(json, usage, chatContext(context, format))
      const translated = outer.answer(chat.body, usage, context)
      return { body: translated.body, skipped: chat.skipped + translated.skipped }
    },
    stream: (context) => new ChainedStream(outer.stream(context), inner.stream(chatContext(context, format))),
  }
}

function translateRequest(
  outer: Translator,
  inner: Translator,
  members: Readonly<Record<string, string>>,
  json: JsonObject,
  context: RequestContext,
): JsonObject {
  const { leaveOut = refuse, report } = context
  const chat = outer.request(json, context)
  const named = (param: string): string => {
    const [member = ''] = param.split(/[.[]/, 1)
    return (Object.hasOwn(members, member) ? members[member] : undefined) ?? param
  }
  try {
    return inner.request(chat, {
      ...context,
      leaveOut: (param, what) => leaveOut(named(param), what),
      ...(report && { report: (param) => report(named(param)) }),
    })
  } catch (error) {
    if (!(error instanceof Untranslatable)) throw error
    throw new Untranslatable(named(error.param), error.what, error.dispensable)
  }
}

/** Asks the inner translator for web searches, and for a usage chunk, which holds the number of reasoning tokens. */
const chatContext = (context: AnswerContext, format: FormatOf): AnswerContext => ({
  ...context,
  reportsSearches: true,
  request: {
    model: context.request.model,
    ...format(context.request),
    stream_options: { include_usage: true },
  },
})

/** Returns the `response_format` of the chat for a request. */
type FormatOf = (request: JsonObject) => JsonObject

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

  get nextEventNumber(): number | undefined {
    return this.#outer.nextEventNumber
  }

  get skipped(): number {
    return this.#outer.skipped + this.#inner.skipped
  }

  push(json: object | undefined): string {
    return this.#translate(this.#inner.push(json))
  }

  copied(delta: string): void {
    this.#inner.copied(delta)
    this.#outer.copied(delta)
  }

  end(usage: TranslatedUsage): string {
    return this.#translate(this.#inner.end(usage)) + this.#outer.end(usage)
  }

  #translate(chat: string): string {
    let events = ''
    for (const frame of chat.split('\n\n')) {
      if (frame === '') continue
      const { data } = readFrame(frame)
      // A comment is passed on to keep the connection alive. It is no JSON, and a parser that throws is slow.
      const chunk = data === '' ? undefined : parseJsonObject(data)
      // `[DONE]` is left out: `end` writes the last event.
      if (chunk || data === '') events += this.#outer.push(chunk)
    }
    return events
  }
}
