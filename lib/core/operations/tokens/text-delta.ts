import { estimateTokens } from './token-estimate.ts'

/** Providers split streams at the ends of tokens: a plain delta of at most this length is almost always one token. */
const ONE_TOKEN_CHARS = 8

/** Counts the tokens of a text delta. */
export function countText(text: string): number {
  if (text === '') return 0
  return text.length <= ONE_TOKEN_CHARS && isAscii(text) ? 1 : estimateTokens(text)
}

/**
 * Counts the tokens of a text delta as it stands in the JSON of an event.
 *
 * @param delta UTF-8 read as latin1, with its escapes.
 */
export function countRawText(delta: string): number {
  if (isAscii(delta)) return countText(delta.includes('\\') ? unescaped(delta) : delta)
  return countText(unescaped(Buffer.from(delta, 'latin1').toString()))
}

function isAscii(text: string): boolean {
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) > 0x7f) return false
  return true
}

function unescaped(text: string): string {
  try {
    return JSON.parse(`"${text}"`) as string
  } catch {
    return text
  }
}

/**
 * Returns the only member of a delta that has text; undefined if the delta has anything else of interest.
 *
 * @param known members that contain text in this protocol.
 */
export function soleTextMember(delta: object, known: ReadonlySet<string>): string | undefined {
  let sole: string | undefined
  for (const [member, value] of Object.entries(delta)) {
    if (value === null || value === '' || member === 'role' || member === 'type') continue
    if (sole !== undefined || typeof value !== 'string' || !known.has(member)) return undefined
    sole = member
  }
  return sole
}
