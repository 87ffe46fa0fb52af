import {
  isJsonObject,
  type JsonObject,
  nonEmptyString,
  objectsIn,
  parseJsonObject,
} from '../../json/index.ts'
import { SEARCH_NAME } from '../requests/web-search.ts'

/** Longer inputs of a search are not read. */
const MAX_INPUT_LENGTH = 16 * 1024

export interface SearchBlock {
  readonly kind: 'search'
  readonly id: unknown
  /** The input as JSON, as far as it has come. */
  input: string
}

/**
 * Puts together the web searches of an answer: two blocks of a message, the search and its result. A chat has no counterpart,
 * so that they are passed on, in `web_searches`, only if the chat is translated into something that has.
 */
export class WebSearches {
  readonly #queries = new Map<unknown, string>()

  /** Begins a search; returns undefined for any other block. */
  begin({ type, name, id, input }: JsonObject): SearchBlock | undefined {
    if (type !== 'server_tool_use' || name !== SEARCH_NAME) return undefined
    this.#note(id, input)
    return { kind: 'search', id, input: '' }
  }

  add(block: SearchBlock, piece: unknown): void {
    if (typeof piece === 'string' && block.input.length < MAX_INPUT_LENGTH) block.input += piece
  }

  /** Takes note of the input of a search, which has come whole. */
  finish({ id, input }: SearchBlock): void {
    this.#note(id, parseJsonObject(input))
  }

  /** Returns the search that a block is the result of, for `web_searches`; undefined for any other block. */
  resultOf({ type, tool_use_id: id, content }: JsonObject): JsonObject | undefined {
    if (type !== 'web_search_tool_result') return undefined
    const urls = objectsIn(content).flatMap(({ url }) => nonEmptyString(url) ?? [])
    return { query: this.#queries.get(id) ?? '', urls, failed: !Array.isArray(content) }
  }

  #note(id: unknown, input: unknown): void {
    const query = isJsonObject(input) ? nonEmptyString(input.query) : undefined
    if (query !== undefined) this.#queries.set(id, query)
  }
}
