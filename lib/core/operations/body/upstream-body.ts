import { isJsonObject } from '../../json/index.ts'
import type { UpstreamEdit } from '../operation.ts'
import { MemberCursor, memberText } from './json-members.ts'

/**
 * Returns the body for a line: the caller's bytes with the line's name of the model, without the gateway's own members.
 */
export function renamedBody(
  raw: Buffer,
  json: Readonly<Record<string, unknown>>,
  model: string,
  streamOptions?: string,
): Buffer {
  // No member stands twice in a body that was read, so nothing else in it can name the model.
  if (json.model === model && !('provider' in json) && streamOptions === undefined) return raw
  const edits: Record<string, string | null> = { model: JSON.stringify(model) }
  if ('provider' in json) edits.provider = null
  if (streamOptions !== undefined) edits.stream_options = streamOptions
  return editMembers(raw, edits)
}

/** Whether the caller of an OpenAI-style stream asks for the usage chunk. */
export function asksForUsage({ stream_options: given }: Readonly<Record<string, unknown>>): boolean {
  return isJsonObject(given) && given.include_usage === true
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

/** Changes of an object's members: a new value as JSON text, or `null` to remove the member. */
export type MemberEdits = Readonly<Record<string, string | null>>

/**
 * Replaces, removes or adds top-level members; all other bytes stay as they are. A member that occurs twice is changed
 * twice, so that no reader of duplicates sees the old value.
 *
 * @param raw valid JSON whose top level is an object.
 */
export function editMembers(raw: Buffer, edits: MemberEdits): Buffer {
  const cuts: Cut[] = []
  let replaced: string[] | undefined
  let keptEnd = -1
  let removedStart = -1
  let removedEnd = -1
  const member = new MemberCursor(raw)
  while (member.next()) {
    let name: string | undefined
    for (const edited in edits) if (member.is(edited)) name = edited
    const text = name === undefined ? undefined : edits[name]
    if (text === null) {
      if (removedStart < 0) removedStart = member.keyStart
      removedEnd = member.valueEnd
      continue
    }
    if (removedStart >= 0) cuts.push({ from: removedStart, to: member.keyStart, text: '' })
    removedStart = -1
    keptEnd = member.valueEnd
    if (name === undefined || text === undefined) continue
    if (!replaced) replaced = [name]
    else if (!replaced.includes(name)) replaced.push(name)
    if (!member.reads(text)) cuts.push({ from: member.valueStart, to: member.valueEnd, text })
  }
  if (removedStart >= 0) cuts.push({ from: keptEnd < 0 ? removedStart : keptEnd, to: removedEnd, text: '' })
  for (const name in edits) {
    if (edits[name] === null || replaced?.includes(name)) continue
    // Behind the last member that is kept and behind all cuts, for what is cut last may be what followed it.
    const place = Math.max(keptEnd < 0 ? raw.indexOf('{') + 1 : keptEnd, cuts.at(-1)?.to ?? 0)
    const text = `${keptEnd < 0 ? '' : ','}${JSON.stringify(name)}:${edits[name]}`
    cuts.push({ from: place, to: place, text })
    keptEnd = Math.max(keptEnd, 0)
  }
  return cuts.length === 0 ? raw : patched(raw, cuts)
}

/** A piece of a text that is taken out, and what takes its place. */
interface Cut {
  readonly from: number
  readonly to: number
  readonly text: string
}

/**
 * One copy, however many cuts there are.
 *
 * @param cuts from front to back.
 */
function patched(raw: Buffer, cuts: readonly Cut[]): Buffer {
  let size = raw.length
  for (const { from, to, text } of cuts) size += Buffer.byteLength(text) - (to - from)
  const copy = Buffer.allocUnsafe(size)
  let written = 0
  let copied = 0
  for (const { from, to, text } of cuts) {
    written += raw.copy(copy, written, copied, from)
    written += copy.write(text, written)
    copied = to
  }
  raw.copy(copy, written, copied)
  return copy
}
