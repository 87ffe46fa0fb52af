import { estimateTokens } from './token-estimate.ts'

/** Providers cut streams at the ends of tokens: a plain delta as short as this is one token nearly always. */
const ONE_TOKEN_CHARS = 8

/** Counts the tokens of a text delta. */
export function countText(text: string): number {
  if (text === '') return 0
  return text.length <= ONE_TOKEN_CHARS && isAscii(text) ? 1 : estimateTokens(text)
}

/**
 * The same for the text as it stands in the JSON of an event.
 *
 * @param delta UTF-8 read as latin1, escapes and all.
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
 * The one member of a delta that holds text; undefined when the delta holds anything else of note.
 *
 * @param known members that hold text in this protocol.
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
