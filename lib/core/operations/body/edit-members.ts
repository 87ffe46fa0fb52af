import { MemberCursor } from './json-members.ts'

/** Changes to the members of an object: a new value as JSON text, or `null` to take the member away. */
export type MemberEdits = Readonly<Record<string, string | null>>

/**
 * The same text with some top-level members replaced, taken away or added; every other byte stays as it is. A member
 * that stands twice is edited twice, so that no reader of duplicates sees the old value.
 *
 * @param raw valid JSON whose top level is an object.
 */
export function editMembers(raw: Buffer, edits: MemberEdits): Buffer {
  const names = Object.keys(edits)
  if (names.length === 0) return raw
  const replaced: string[] = []
  const patch = new Patch(raw)
  const member = new MemberCursor(raw)
  let keptEnd = -1
  let [removedStart, removedEnd] = [-1, -1]
  while (member.next()) {
    const name = nameOf(member, names)
    const text = name === undefined ? undefined : edits[name]
    if (text === null) {
      if (removedStart < 0) removedStart = member.keyStart
      removedEnd = member.valueEnd
      continue
    }
    if (removedStart >= 0) patch.cut(removedStart, member.keyStart, '')
    removedStart = -1
    keptEnd = member.valueEnd
    if (text === undefined) continue
    replaced.push(name as string)
    if (!member.reads(text)) patch.cut(member.valueStart, member.valueEnd, text)
  }
  if (removedStart >= 0) patch.cut(keptEnd < 0 ? removedStart : keptEnd, removedEnd, '')
  for (const name of names) {
    if (edits[name] === null || replaced.includes(name)) continue
    const text = `${JSON.stringify(name)}:${edits[name]}`
    if (keptEnd < 0) patch.add(raw.indexOf('{') + 1, text)
    else patch.add(keptEnd, `,${text}`)
    keptEnd = Math.max(keptEnd, 0)
  }
  return patch.apply()
}

function nameOf(member: MemberCursor, names: readonly string[]): string | undefined {
  for (let i = 0; i < names.length; i++) if (member.is(names[i] as string)) return names[i]
  return undefined
}

/** A cut of a text, and what takes its place. */
interface Cut {
  readonly from: number
  readonly to: number
  readonly text: string
}

/** Cuts of a text, from front to back. */
class Patch {
  readonly #raw: Buffer
  #cuts: Cut[] | undefined

  constructor(raw: Buffer) {
    this.#raw = raw
  }

  cut(from: number, to: number, text: string): void {
    if (this.#cuts) this.#cuts.push({ from, to, text })
    else this.#cuts = [{ from, to, text }]
  }

  /** Puts a text there, or behind the last cut. */
  add(at: number, text: string): void {
    const place = Math.max(at, this.#cuts?.at(-1)?.to ?? 0)
    this.cut(place, place, text)
  }

  /** One copy, however many cuts there are; the text itself where there are none. */
  apply(): Buffer {
    const raw = this.#raw
    const cuts = this.#cuts
    if (!cuts) return raw
    let size = raw.length
    for (const { from, to, text } of cuts) size += Buffer.byteLength(text) - (to - from)
    const patched = Buffer.allocUnsafe(size)
    let written = 0
    let copied = 0
    for (const { from, to, text } of cuts) {
      written += raw.copy(patched, written, copied, from)
      written += patched.write(text, written)
      copied = to
    }
    raw.copy(patched, written, copied)
    return patched
  }
}
