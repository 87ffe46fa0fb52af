// A run of up to eight Latin letters or digits with the blank before it, a run of white space, or any one
// character: together they cover every text, so joining the tokens gives it back unchanged.
const TOKEN = / ?[\p{Script=Latin}\p{N}]{1,8}|\s+|./gsu

/** Splits a text into the demo models' tokens. Joined, they are the text again. */
export function tokensOf(text: string): string[] {
  return text.match(TOKEN) ?? []
}

/** Counts the demo models' tokens of a text. */
export function countTokens(text: string): number {
  return tokensOf(text).length
}
