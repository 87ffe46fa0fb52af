import { Fault } from './faults.ts'
import type { JsonObject } from './prompt.ts'

/** A response that is kept, with the conversation that it ends. */
export interface KeptResponse {
  readonly response: object
  /** What it was asked with, itself. */
  readonly input: readonly JsonObject[]
  /** All of the conversation: what went before, its input and its output. */
  readonly conversation: readonly JsonObject[]
}

const MOST_KEPT = 1000

/** The responses that the server keeps, as the real API does: in memory, the oldest giving way. */
export class KeptResponses {
  readonly #byId = new Map<string, KeptResponse>()

  keep(id: string, kept: KeptResponse): void {
    this.#byId.set(id, kept)
    const [oldest] = this.#byId.keys()
    if (this.#byId.size > MOST_KEPT && oldest !== undefined) this.#byId.delete(oldest)
  }

  /** Throws a `Fault` where there is no such response to go on from. */
  conversationOf(id: string): readonly JsonObject[] {
    const kept = this.#byId.get(id)
    if (kept !== undefined) return kept.conversation
    const message = `Previous response with id '${id}' not found.`
    throw new Fault('unknown_previous', { message, param: 'previous_response_id' })
  }

  /** Answers `GET` and `DELETE` of `/v1/responses/{id}`, and `GET` of its `/input_items`. Else throws a `Fault`. */
  answer(method: string | undefined, path: string): object {
    const [, id = '', part] = /^\/v1\/responses\/([^/]+)(\/input_items)?$/.exec(path) ?? []
    const kept = this.#byId.get(decodeURIComponent(id))
    if (kept === undefined)
      throw new Fault('unknown_path', { message: `Response with id '${id}' not found.` })
    if (method === 'GET') return part === undefined ? kept.response : listOf(kept.input)
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
