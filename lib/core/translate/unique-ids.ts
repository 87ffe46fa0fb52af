import { isJsonObject, type JsonObject, objectsIn, parseJson, parseKeepingIntegers } from '../json/index.ts'
import { messages, type Operation } from '../operations/index.ts'
import { AnswerIds } from './tool-ids.ts'

/**
 * Makes the ids of tool calls unique in an answer that is not translated. Anthropic refuses a conversation that has one
 * twice, but some lines of its protocol count their calls from the start in each turn. The other protocols accept that.
 */
export class UniqueIds {
  readonly #ids: AnswerIds
  #answerId: unknown
  #count = 0

  /** @param request the caller's request. */
  private constructor(request: JsonObject) {
    this.#ids = new AnswerIds(request)
  }

  /** Returns undefined for an endpoint whose callers need none, and for a conversation that the line keeps with its ids. */
  static for(operation: Operation, request: JsonObject): UniqueIds | undefined {
    return operation === messages && !request.thread ? new UniqueIds(request) : undefined
  }

  /**
   * Takes a whole answer or the next event of a stream.
   *
   * @param json the answer or the event, parsed.
   * @param text its JSON.
   * @returns the JSON with other ids; undefined if all are unique.
   */
  replaced(json: JsonObject, text: string): string | undefined {
    const { id, message } = json
    this.#answerId ??= isJsonObject(message) ? message.id : id
    const uses = usesIn(json)
    if (uses.length === 0) return undefined
    const ids = uses.map((use) => this.#idOf(use))
    if (uses.every((use, i) => use.id === ids[i])) return undefined
    const copy = parseJson(text, undefined, parseKeepingIntegers)
    for (const [i, use] of usesIn(copy).entries()) use.id = ids[i]
    return JSON.stringify(copy)
  }

  #idOf({ id }: JsonObject): unknown {
    return typeof id === 'string' ? this.#ids.uniqueIdOf(id, this.#answerId, this.#count++) : id
  }
}

/** Returns the tool calls in a message or an event. */
function usesIn(json: unknown): Record<string, unknown>[] {
  if (!isJsonObject(json)) return []
  const { content, content_block: block, message } = json
  const first = isJsonObject(message) ? objectsIn(message.content) : []
  const blocks = [...objectsIn(content), ...first, ...(isJsonObject(block) ? [block] : [])]
  return blocks.filter(({ type }) => type === 'tool_use')
}
