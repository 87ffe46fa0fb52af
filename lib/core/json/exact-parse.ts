import { Buffer } from 'node:buffer'
import { CLOSE_BRACE, COLON, COMMA, OPEN_BRACE, QUOTE } from './bytes.ts'
import { endOfString } from './json-bounds.ts'

const BEGIN = [...Buffer.from('{"":[')]
const END = [...Buffer.from(']}')]
/** A longer string is copied natively. */
const NEAR = 48

/**
 * Parses JSON as `JSON.parse` should. That of Node 24 takes a name with an escape for another one, if an object of an
 * earlier text, of anybody, had a name with a backslash at the same place: after `{"\\":1}` it reads `{"\u006e":1}` as the
 * former. Whatever it takes has a backslash, so a text without such names was read well.
 *
 * @param raw the bytes of the text, if they are at hand.
 * @throws {SyntaxError} if the text is not JSON.
 */
export function parseExactly(text: string, raw?: Buffer): unknown {
  const json: unknown = JSON.parse(text)
  if (!text.includes('\\')) return json
  const names = { members: 0, backslash: false }
  tallyNames(json, names, true)
  return names.backslash ? parsedAsLists(raw ?? Buffer.from(text)) : json
}

/** Parses as {@link parseExactly}, and counts the members of all objects: a repeated one counts once. */
export function parseCounting(raw: Buffer): { readonly json: unknown; readonly members: number } {
  const text = raw.toString()
  const json: unknown = JSON.parse(text)
  const names = { json, members: 0, backslash: false }
  tallyNames(json, names, text.includes('\\'))
  if (!names.backslash) return names
  const exact = { json: parsedAsLists(raw), members: 0, backslash: false }
  tallyNames(exact.json, exact, false)
  return exact
}

/**
 * Adds up the members of a value at every depth, which is bounded.
 *
 * @param escaped whether a name can have a backslash.
 */
function tallyNames(value: unknown, names: { members: number; backslash: boolean }, escaped: boolean): void {
  if (typeof value !== 'object' || value === null) return
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++)
      if (typeof value[i] === 'object') tallyNames(value[i], names, escaped)
    return
  }
  for (const name in value) {
    names.members++
    if (escaped && name.includes('\\')) names.backslash = true
    const member = (value as Record<string, unknown>)[name]
    if (typeof member === 'object') tallyNames(member, names, escaped)
  }
}

function parsedAsLists(raw: Buffer): unknown {
  return fromLists(JSON.parse(asLists(raw).toString()))
}

/** Writes each object of a valid text as `{"":[name, value, …]}`: names that are values are read well. */
function asLists(raw: Buffer): Buffer {
  let braces = 0
  for (let at = 0; at < raw.length; at++) if (raw[at] === OPEN_BRACE) braces++
  const lists = Buffer.allocUnsafe(raw.length + braces * (BEGIN.length + END.length - 2))
  let to = 0
  for (let at = 0; at < raw.length; ) {
    const byte = raw[at] as number
    if (byte === QUOTE) {
      const end = endOfString(raw, at)
      if (end - at > NEAR) to += raw.copy(lists, to, at, end)
      else for (let i = at; i < end; i++) lists[to++] = raw[i] as number
      at = end
      continue
    }
    at++
    if (byte === OPEN_BRACE) for (const each of BEGIN) lists[to++] = each
    else if (byte === CLOSE_BRACE) for (const each of END) lists[to++] = each
    else lists[to++] = byte === COLON ? COMMA : byte
  }
  return lists.subarray(0, to)
}

function fromLists(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) value[i] = fromLists(value[i])
    return value
  }
  const list = (value as Record<'', unknown[]>)['']
  const object: Record<string, unknown> = {}
  for (let i = 0; i < list.length; i += 2) setMember(object, list[i] as string, fromLists(list[i + 1]))
  return object
}

/** Sets a member as `JSON.parse` does: an assignment to `__proto__` would change the prototype. */
export function setMember(object: Record<string, unknown>, name: string, value: unknown): void {
  if (name !== '__proto__') object[name] = value
  else Object.defineProperty(object, name, { value, writable: true, enumerable: true, configurable: true })
}
