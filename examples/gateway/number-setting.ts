/** Returns the number that a variable holds; NaN if it holds none. To `Number`, blanks are 0. */
export function numberIn(text: string): number {
  return text.trim() === '' ? Number.NaN : Number(text)
}
