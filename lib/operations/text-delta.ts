import { estimateTokens } from './token-estimate.ts'

/**
 * Counts the tokens of a text delta without parsing the event around it.
 *
 * @param text events as latin1.
 * @param at where the first member of the delta object stands.
 * @param end where the event ends.
 * @param prefixes what may stand there, each up to and with the opening quote of the text.
 * @returns the tokens; undefined when the delta has another shape, so that the event has to be parsed.
 */
export function countTextDelta(
  text: string,
  at: number,
  end: number,
  prefixes: readonly string[],
): number | undefined {
  const prefix = prefixes.find((candidate) => text.startsWith(candidate, at))
  if (prefix === undefined) return undefined
  const start = at + prefix.length
  const close = text.indexOf('"', start)
  if (close < 0 || close >= end) return undefined
  const value = text.slice(start, close)
  // An escape may hide a quote or a character: leave it to the parser. Anything behind the text but the end of the
  // delta is another member of it, output perhaps.
  if (value.includes('\\') || text[close + 1] !== '}') return undefined
  if (value === '') return 0
  return estimateTokens(isAscii(value) ? value : Buffer.from(value, 'latin1').toString('utf8'))
}

function isAscii(text: string): boolean {
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) > 0x7f) return false
  return true
}
