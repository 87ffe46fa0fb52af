import type { UpstreamEdit } from '../operation.ts'
import { editMembers } from './edit-members.ts'
import { memberText } from './json-members.ts'

/** A body on its way upstream: the caller's bytes under the line's name of the model, without what is the gateway's. */
export function renamedBody(
  raw: Buffer,
  json: Readonly<Record<string, unknown>>,
  model: string,
  streamOptions?: string,
): Buffer {
  // Even where it is the same: the member may stand twice, and the upstream may read the other one.
  const edits: Record<string, string | null> = { model: JSON.stringify(model) }
  if ('provider' in json) edits.provider = null
  if (streamOptions !== undefined) edits.stream_options = streamOptions
  return editMembers(raw, edits)
}

/** Whether the caller of an OpenAI-style stream wants its usage chunk. */
export function asksForUsage({ stream_options: given }: Readonly<Record<string, unknown>>): boolean {
  return (
    typeof given === 'object' && given !== null && 'include_usage' in given && given.include_usage === true
  )
}

/** The body of an OpenAI-style call whose stream is asked for its usage in any case. */
export function meteredBody(
  raw: Buffer,
  json: Readonly<Record<string, unknown>>,
  { model }: UpstreamEdit,
): Buffer {
  if (json.stream !== true || asksForUsage(json)) return renamedBody(raw, json, model)
  return renamedBody(
    raw,
    json,
    model,
    withUsage(json.stream_options ? memberText(raw, 'stream_options') : undefined),
  )
}

/** The caller's stream options with the usage chunk asked for; what else they hold stays as it was written. */
function withUsage(streamOptions = '{}'): string {
  return editMembers(Buffer.from(streamOptions), { include_usage: 'true' }).toString()
}
