import type { UpstreamEdit } from '../operation.ts'
import { editMembers } from './edit-members.ts'
import { memberText } from './json-members.ts'

/**
 * Returns the body for a line: the caller's bytes with the line's name of the model, without the gateway's own members.
 */
export function renamedBody(
  raw: Buffer,
  json: Readonly<Record<string, unknown>>,
  model: string,
  streamOptions?: string,
): Buffer {
  // Also if the name is the same: the member may occur twice, and the upstream may read the other one.
  const edits: Record<string, string | null> = { model: JSON.stringify(model) }
  if ('provider' in json) edits.provider = null
  if (streamOptions !== undefined) edits.stream_options = streamOptions
  return editMembers(raw, edits)
}

/** Whether the caller of an OpenAI-style stream asks for the usage chunk. */
export function asksForUsage({ stream_options: given }: Readonly<Record<string, unknown>>): boolean {
  return (
    typeof given === 'object' && given !== null && 'include_usage' in given && given.include_usage === true
  )
}

/** Returns the body of an OpenAI-style call. If it streams, it asks for the usage chunk in any case. */
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

/** Returns the caller's stream options with the usage chunk; all other options stay as they are. */
function withUsage(streamOptions = '{}'): string {
  return editMembers(Buffer.from(streamOptions), { include_usage: 'true' }).toString()
}
