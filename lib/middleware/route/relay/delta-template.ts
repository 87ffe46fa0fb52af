/**
 * Recognises the events of a stream that differ from one already read in nothing but their text: most events of most
 * streams. Such an event means what the other meant, so it need not be parsed, and telling it is two comparisons.
 */
export class DeltaTemplate {
  #before = ''
  #after = ''

  /**
   * Takes an event as the pattern.
   *
   * @param frame the event, UTF-8 read as latin1.
   * @param member the member whose string is the text, such as `content`.
   */
  learn(frame: string, member: string): void {
    const around = splitAtText(frame, member)
    this.#before = around?.before ?? ''
    this.#after = around?.after ?? ''
  }

  /** Nothing fits until another event is taken as the pattern. */
  forget(): void {
    this.#before = ''
  }

  /**
   * Passes over the events at the beginning of `text` that fit.
   *
   * @param text whole events, UTF-8 read as latin1.
   * @param count is given the text of each, as it stands in the JSON.
   * @returns where the first event starts that does not fit.
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

/** What stands before and behind the text of an event; undefined when the member is not to be found. */
export function splitAtText(frame: string, member: string): { before: string; after: string } | undefined {
  const open = startOfText(frame, member)
  const close = open < 0 ? -1 : endOfText(frame, open)
  return close < 0 ? undefined : { before: frame.slice(0, open), after: frame.slice(close) }
}

/** Where the text begins; -1 when the member is not to be found. */
function startOfText(frame: string, member: string): number {
  for (const key of [`"${member}":"`, `"${member}": "`]) {
    const at = frame.lastIndexOf(key)
    if (at >= 0) return at + key.length
  }
  return -1
}

/** Where the quote stands that ends the string which begins at `from`; -1 when it does not end. */
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
