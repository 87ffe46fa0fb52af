import { Fault } from './faults.ts'
import type { JsonObject } from './prompt.ts'

export interface StoredResponse {
  readonly response: object
  /** The input of its request. */
  readonly input: readonly JsonObject[]
  /** The whole conversation: earlier items, its input and its output. */
  readonly conversation: readonly JsonObject[]
}

const MAX_STORED = 1000

/** Stores responses in memory, as the real API does; the oldest are dropped. */
export class StoredResponses {
  readonly #byId = new Map<string, StoredResponse>()

  add(id: string, response: StoredResponse): void {
    this.#byId.set(id, response)
    const [oldest] = this.#byId.keys()
    if (this.#byId.size > MAX_STORED && oldest !== undefined) this.#byId.delete(oldest)
  }

  /** Returns the conversation of a response; throws a `Fault` if there is none. */
  conversationOf(id: string): readonly JsonObject[] {
    const stored = this.#byId.get(id)
    if (stored !== undefined) return stored.conversation
    const message = `Previous response with id '${id}' not found.`
    throw new Fault('unknown_previous', { message, param: 'previous_response_id' })
  }

  /**
   * Returns the answer to `GET` and `DELETE` of `/v1/responses/{id}`, and to `GET` of its `/input_items`. Throws a `Fault`
   * for all else.
   */
  answer(method: string | undefined, path: string): object {
    const [, id = '', part] = /^\/v1\/responses\/([^/]+)(\/input_items)?$/.exec(path) ?? []
    const stored = this.#byId.get(decodeURIComponent(id))
    if (stored === undefined)
      throw new Fault('unknown_path', { message: `Response with id '${id}' not found.` })
    if (method === 'GET') return part === undefined ? stored.response : listOf(stored.input)
    if (method !== 'DELETE' || part !== undefined) {
      throw new Fault('unknown_path', { message: `The demo model server has no ${method} ${path}.` })
    }
    this.#byId.delete(id)
    return { id, object: 'response.deleted', deleted: true }
  }
}

function listOf(items: readonly JsonObject[]): object {
  const data = items.map((item, index) => ({ id: `item_${index}`, type: 'message', ...item }))
  return {
    object: 'list',
    data,
    first_id: data.at(0)?.id ?? null,
    last_id: data.at(-1)?.id ?? null,
    has_more: false,
  }
}
