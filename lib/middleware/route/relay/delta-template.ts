/**
 * Recognises events that differ from an earlier one only in their text, as most events of most streams do. Such an
 * event need not be parsed; recognising it takes two comparisons.
 */
export class DeltaTemplate {
  #before = ''
  #after = ''

  /**
   * Takes an event as the pattern.
   *
   * @param frame the event, as UTF-8 read as latin1.
   * @param member the member whose string is the text, such as `content`.
   */
  learn(frame: string, member: string): void {
    const around = splitAtText(frame, member)
    this.#before = around?.before ?? ''
    this.#after = around?.after ?? ''
  }

  /** Drops the pattern: no event matches until another one is learned. */
  forget(): void {
    this.#before = ''
  }

  /**
   * Skips the matching events at the beginning of `text`.
   *
   * @param text whole events, as UTF-8 read as latin1.
   * @param count is called with the text of each event, as it is written in the JSON.
   * @returns the start of the first event that does not match.
   */
  skim(text: string, from: number, count: (delta: string) => void): number {
    const before = this.#before
    const after = this.#after
    if (before === '') return from
    let at = from
    while (at < text.length && text.slice(at, at + before.length) === before) {
      const open = at + before.length
      const close = endOfText(text, open)
      if (close < 0 || text.slice(close, close + after.length) !== after) break
      count(text.slice(open, close))
      at = close + after.length
    }
    return at
  }
}

/** Returns the parts of an event before and after its text; undefined if the member is not found. */
export function splitAtText(frame: string, member: string): { before: string; after: string } | undefined {
  const open = startOfText(frame, member)
  const close = open < 0 ? -1 : endOfText(frame, open)
  return close < 0 ? undefined : { before: frame.slice(0, open), after: frame.slice(close) }
}

/** Returns where the text begins; -1 if the member is not found. */
function startOfText(frame: string, member: string): number {
  for (const key of [`"${member}":"`, `"${member}": "`]) {
    const at = frame.lastIndexOf(key)
    if (at >= 0) return at + key.length
  }
  return -1
}

/** Returns the position of the quote that ends the string beginning at `from`; -1 if it does not end. */
function endOfText(text: string, from: number): number {
  let quote = text.indexOf('"', from)
  while (quote >= 0 && isEscaped(text, quote, from)) quote = text.indexOf('"', quote + 1)
  return quote
}

function isEscaped(text: string, at: number, from: number): boolean {
  let backslashes = 0
  while (at - 1 - backslashes >= from && text[at - 1 - backslashes] === '\\') backslashes++
  return backslashes % 2 === 1
}
