import {
  isTagName,
  isTagValue,
  MAX_TAG_BYTES,
  MAX_TAGS,
  NO_TAGS,
  type Tags,
  tagsOf,
} from '../catalog/index.ts'
import { GatewayError } from '../errors/index.ts'
import { isJsonObject, type JsonObject } from '../json/index.ts'
import { personOf } from '../operations/index.ts'

/** The parts of a call that say who and what it is for. */
interface Attributed {
  readonly principal: { readonly tags?: Tags } | null
  readonly protocol: { readonly name: string }
  user: string | null
  tags: Tags | null
}

/**
 * Writes `call.tags`, unless they are set: the key's own, and those of the header `X-Gateway-Tags`.
 *
 * @throws {GatewayError} `invalid_request` for a header that cannot be read.
 */
export function readTags(call: Attributed, header: string | string[] | undefined): void {
  if (call.tags) return
  const own = call.principal?.tags ?? NO_TAGS
  call.tags = header === undefined ? own : withHeader(own, String(header))
}

/** Writes `call.user`, and adds the tags that an OpenAI-style body has as `metadata`. Comes after {@link readTags}. */
export function readAttribution(call: Attributed, json: JsonObject): void {
  const { user, safety_identifier: identifier, metadata } = json
  if (call.protocol.name === 'anthropic') {
    if (isJsonObject(metadata)) call.user = userOf(metadata.user_id)
    return
  }
  if (user !== undefined || identifier !== undefined) call.user = userOf(user) ?? userOf(identifier)
  if (isJsonObject(metadata)) call.tags = withMetadata(call.tags ?? NO_TAGS, metadata)
}

const MAX_USER_BYTES = 128
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is taken out
const CONTROLS = /[\u0000-\u001f\u007f]/g

/** Returns the name of a user as calls have it. One that is too long is cut: its client may not know that it is. */
export function userOf(given: unknown): string | null {
  if (typeof given !== 'string') return null
  const text = given.slice(0, 1000).toWellFormed()
  return cut(personOf(text).replace(CONTROLS, '?').trim()) || null
}

function cut(text: string): string {
  if (text.length <= MAX_USER_BYTES / 4) return text
  const bytes = Buffer.from(text)
  if (bytes.length <= MAX_USER_BYTES) return text
  let end = MAX_USER_BYTES
  // Not within a character.
  while (((bytes[end] as number) & 0xc0) === 0x80) end--
  return bytes.toString('utf8', 0, end)
}

const PRINTABLE = /^[\x20-\x7e]+$/

function withHeader(own: Tags, header: string): Tags {
  if (header.trim() === '') return own
  const tags = new Map<string, string>()
  for (const pair of header.split(',', MAX_TAGS + 1)) {
    // By no regular expression: it would try each space of a long run for the end of a name.
    const equals = pair.indexOf('=')
    const name = pair.slice(0, Math.max(equals, 0)).trim()
    const value = pair.slice(equals + 1).trim()
    if (!PRINTABLE.test(pair) || !isTagName(name) || !isTagValue(value) || tags.has(name)) throw malformed()
    tags.set(name, value)
  }
  for (const [name, value] of Object.entries(own)) tags.set(name, value)
  if (tags.size > MAX_TAGS) throw malformed()
  return tagsOf(tags)
}

/** Adds the pairs that can be tags. What else stands there is for the upstream. */
function withMetadata(tags: Tags, metadata: JsonObject): Tags {
  const all = new Map(Object.entries(tags))
  for (const name in metadata) {
    if (all.size >= MAX_TAGS) break
    const value = metadata[name]
    if (typeof value === 'string' && !all.has(name) && isTagName(name) && isTagValue(value))
      all.set(name, value)
  }
  return all.size === Object.keys(tags).length ? tags : tagsOf(all)
}

function malformed(): GatewayError {
  return new GatewayError('invalid_request', {
    param: 'X-Gateway-Tags',
    message: `The header X-Gateway-Tags must hold pairs such as team=search,env=prod: at most ${MAX_TAGS} with the tags of the key, each name once, and at most ${MAX_TAG_BYTES} bytes for a name or a value.`,
  })
}
