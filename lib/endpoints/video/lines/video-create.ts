import type { LineRequestBody, RequestBody } from '../../../core/call/index.ts'
import type { Operation } from '../../../core/operations/index.ts'

/** A request for a video, in the caller's protocol. */
export interface VideoCreate {
  readonly operation: Operation
  /** The body, which the schema of the operation has accepted. */
  readonly body: RequestBody
  /** The upstream's id of the video to be remixed; null if it is no remix. */
  readonly remixOf: string | null
}

/** Returns the JSON body for a line of the caller's protocol. It keeps the caller's bytes if they are JSON. */
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
