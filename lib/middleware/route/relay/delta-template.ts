/**
 * Recognises events that differ from an earlier one only in their text, as most events of most streams do. Such an
 * event need not be parsed. Among others of its kind, recognising it takes one comparison.
 */
export class DeltaTemplate {
  #before = ''
  #after = ''
  /** The part between the texts of two events. */
  #between = ''

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
    this.#between = this.#after + this.#before
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
    const between = this.#between
    if (before === '' || text.slice(from, from + before.length) !== before) return from
    let open = from + before.length
    for (;;) {
      const close = endOfText(text, open)
      if (close < 0) return open - before.length
      if (text.slice(close, close + between.length) !== between)
        return this.#skimLast(text, open, close, count)
      count(text.slice(open, close))
      open = close + between.length
    }
  }

  /** Skips an event, whose text is known, behind which no other one matches. */
  #skimLast(text: string, open: number, close: number, count: (delta: string) => void): number {
    const end = close + this.#after.length
    if (text.slice(close, end) !== this.#after) return open - this.#before.length
    count(text.slice(open, close))
    return end
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
