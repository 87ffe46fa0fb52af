import { MemberCursor } from './json-members.ts'

/** Changes of an object's members: a new value as JSON text, or `null` to remove the member. */
export type MemberEdits = Readonly<Record<string, string | null>>

/**
 * Replaces, removes or adds top-level members; all other bytes stay as they are. A member that occurs twice is changed
 * twice, so that no reader of duplicates sees the old value.
 *
 * @param raw valid JSON whose top level is an object.
 */
export function editMembers(raw: Buffer, edits: MemberEdits): Buffer {
  const names = Object.keys(edits)
  if (names.length === 0) return raw
  const cuts: Cut[] = []
  let replaced: string[] | undefined
  let keptEnd = -1
  let [removedStart, removedEnd] = [-1, -1]
  const member = new MemberCursor(raw)
  while (member.next()) {
    const name = nameOf(member, names)
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
    replaced = replaced ? [...replaced, name] : [name]
    if (!member.reads(text)) cuts.push({ from: member.valueStart, to: member.valueEnd, text })
  }
  if (removedStart >= 0) cuts.push({ from: keptEnd < 0 ? removedStart : keptEnd, to: removedEnd, text: '' })
  for (let i = 0; i < names.length; i++) {
    const name = names[i] as string
    if (edits[name] === null || replaced?.includes(name)) continue
    // Behind the last member that is kept and behind all cuts, because the last cut may follow that member.
    const place = Math.max(keptEnd < 0 ? raw.indexOf('{') + 1 : keptEnd, cuts.at(-1)?.to ?? 0)
    const text = `${keptEnd < 0 ? '' : ','}${JSON.stringify(name)}:${edits[name]}`
    cuts.push({ from: place, to: place, text })
    keptEnd = Math.max(keptEnd, 0)
  }
  return cuts.length === 0 ? raw : patched(raw, cuts)
}

function nameOf(member: MemberCursor, names: readonly string[]): string | undefined {
  for (let i = 0; i < names.length; i++) if (member.is(names[i] as string)) return names[i]
  return undefined
}

/** A part of a text that is removed, and its replacement. */
interface Cut {
  readonly from: number
  readonly to: number
  readonly text: string
}

/**
 * Makes one copy, however many cuts there are.
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
