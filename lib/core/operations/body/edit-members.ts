import { type JsonMember, topLevelMembers } from './json-members.ts'

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
  const members = topLevelMembers(raw)
  const added = names.filter((name) => edits[name] !== null)
  const patch = new Patch(raw)
  let lastKept: JsonMember | undefined
  for (let i = 0; i < members.length; i++) {
    const member = members[i] as JsonMember
    const name = nameOf(member, names)
    const text = name === undefined ? undefined : edits[name]
    if (text !== null) {
      lastKept = member
      if (name === undefined || text === undefined) continue
      const place = added.indexOf(name)
      if (place >= 0) added.splice(place, 1)
      patch.cut(member.valueStart, member.valueEnd, text)
      continue
    }
    while (isRemoved(members[i + 1], names, edits)) i++
    const next = members[i + 1]
    const from = next || !lastKept ? member.keyStart : lastKept.valueEnd
    patch.cut(from, next ? next.keyStart : (members[i] as JsonMember).valueEnd, '')
  }
  if (added.length > 0) {
    const text = added.map((name) => `${JSON.stringify(name)}:${edits[name]}`).join(',')
    patch.add(lastKept ? lastKept.valueEnd : raw.indexOf('{') + 1, lastKept ? `,${text}` : text)
  }
  return patch.apply()
}

function nameOf(member: JsonMember, names: readonly string[]): string | undefined {
  for (const name of names) if (member.is(name)) return name
  return undefined
}

function isRemoved(member: JsonMember | undefined, names: readonly string[], edits: MemberEdits): boolean {
  const name = member && nameOf(member, names)
  return name !== undefined && edits[name] === null
}

/** Cuts of a text, from front to back, each with what takes its place. */
class Patch {
  readonly #raw: Buffer
  readonly #ends: number[] = []
  readonly #starts: number[] = []
  readonly #texts: string[] = []
  #size: number

  constructor(raw: Buffer) {
    this.#raw = raw
    this.#size = raw.length
  }

  cut(from: number, to: number, text: string): void {
    this.#ends.push(from)
    this.#starts.push(to)
    this.#texts.push(text)
    this.#size += Buffer.byteLength(text) - (to - from)
  }

  /** Puts a text there, or behind the last cut. */
  add(at: number, text: string): void {
    const place = Math.max(at, this.#starts.at(-1) ?? 0)
    this.cut(place, place, text)
  }

  /** One copy, however many cuts there are. */
  apply(): Buffer {
    const raw = this.#raw
    const patched = Buffer.allocUnsafe(this.#size)
    let size = 0
    let copied = 0
    for (let i = 0; i < this.#ends.length; i++) {
      size += raw.copy(patched, size, copied, this.#ends[i])
      size += patched.write(this.#texts[i] as string, size)
      copied = this.#starts[i] as number
    }
    raw.copy(patched, size, copied)
    return patched
  }
}
