import type { LineRequestBody, RequestBody } from '../../../core/call/index.ts'
import type { Operation } from '../../../core/operations/index.ts'

/** What a create is made of: what the caller sent, in the protocol in which it came. */
export interface VideoCreate {
  readonly operation: Operation
  /** A body that the schema of its operation has passed. */
  readonly body: RequestBody
  /** The upstream's id of the video to be remixed; null where it is none. */
  readonly remixOf: string | null
}

/** An order for a line of its own protocol, as JSON: the caller's bytes, where they are JSON. */
export function jsonBody({ operation, body }: VideoCreate, model: string): LineRequestBody {
  const { raw, json } = body
  const { provider: _, ...members } = json
  const bytes =
    raw.length > 0 ? operation.upstreamBody(raw, json, { model }) : jsonBytes({ ...members, model })
  return { type: 'application/json', bytes }
}

export function jsonBytes(members: object): Buffer {
  return Buffer.from(JSON.stringify(members))
}
