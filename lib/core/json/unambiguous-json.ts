import { type Buffer, isUtf8 } from 'node:buffer'
import { endOfString, jsonExcess, newTally } from './json-bounds.ts'

/** What is wrong with a body, in words for its caller. */
export class JsonFault extends Error {
  /** The member that stands twice, as a refusal names it; empty for other faults. */
  readonly named: { readonly param?: string }

  constructor(message: string, named: JsonFault['named'] = {}) {
    super(message)
    this.named = named
  }
}

/** Shared, because a scan is never interrupted. */
const tally = newTally()

/**
 * Parses the body of a request that others will read, too: what it says must not depend on who reads it. A member that
 * stands twice in an object could hide from the gateway what the upstream reads.
 *
 * @throws {JsonFault} if it is not UTF-8, too large to be parsed, not JSON, or has a member twice in an object.
 */
export function parseUnambiguous(raw: Buffer): unknown {
  if (!isUtf8(raw)) throw new JsonFault('The request body is not valid UTF-8.')
  tally.values = 0
  tally.members = 0
  const excess = jsonExcess(raw, tally)
  if (excess !== undefined) throw new JsonFault(excess)
  const { members } = tally
  let json: unknown
  try {
    json = JSON.parse(raw.toString())
  } catch {
    throw new JsonFault('The request body is not valid JSON.')
  }
  if (typeof json === 'object' && json !== null && membersIn(json) !== members) throw repeated(raw)
  return json
}

/** Returns the number of members of an object or list, at every depth. The depth is bounded. */
function membersIn(value: object): number {
  let members = 0
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) {
      const item: unknown = value[i]
      if (typeof item === 'object' && item !== null) members += membersIn(item)
    }
    return members
  }
  for (const name in value) {
    members++
    const member = (value as Record<string, unknown>)[name]
    if (typeof member === 'object' && member !== null) members += membersIn(member)
  }
  return members
}

const COLON = 0x3a
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d
const QUOTE = 0x22

/** In a larger body, the member that stands twice is not looked for. */
const MAX_SEARCHED_BYTES = 64 * 1024

function repeated(raw: Buffer): JsonFault {
  const member = raw.length > MAX_SEARCHED_BYTES ? undefined : repeatedMember(raw)?.slice(0, 200)
  const named = member === undefined ? 'A member' : JSON.stringify(member)
  const message = `${named} stands twice in the same object of the body. Send it once.`
  return new JsonFault(message, member === undefined ? {} : { param: member })
}

/** Returns the first name that an object of a valid JSON text has twice. */
function repeatedMember(raw: Buffer): string | undefined {
  const open: Set<string>[] = []
  for (let at = 0; at < raw.length; ) {
    const byte = raw[at]
    if (byte !== QUOTE) {
      if (byte === OPEN_BRACE) open.push(new Set())
      else if (byte === CLOSE_BRACE) open.pop()
      at++
      continue
    }
    const end = endOfString(raw, at)
    const text = raw.toString('utf8', at, end)
    at = end
    while ((raw[at] ?? 0x21) <= 0x20) at++
    if (raw[at] !== COLON) continue
    const name = JSON.parse(text) as string
    if (open.at(-1)?.has(name)) return name
    open.at(-1)?.add(name)
  }
  return undefined
}
