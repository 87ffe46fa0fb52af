const FENCE = '```'

/** Removes the code block around an answer that comes in pieces. Text without one comes out as it is. */
export class Unfenced {
  /** Undefined until it is known whether the answer begins with a code block. */
  #fenced: boolean | undefined
  /** What may belong to the beginning or to the end of a code block. It is never read again for a piece that cannot end it. */
  #held = ''
  /** What a piece must have to tell how the answer begins. */
  #awaited = /\S/

  /** Returns the text that can be sent. */
  push(text: string): string {
    if (this.#fenced === undefined) {
      this.#held += text
      if (!this.#awaited.test(text) || !this.#begin()) return ''
      const begun = this.#held
      this.#held = ''
      return this.push(begun)
    }
    const end = this.#fenced ? endOfContent(text) : text.length
    if (end === 0) {
      this.#held += text
      return ''
    }
    const sent = this.#held + text.slice(0, end)
    this.#held = text.slice(end)
    return sent
  }

  end(): string {
    const rest = this.#held
    this.#held = ''
    return this.#fenced && rest.trim() === FENCE ? '' : rest
  }

  /** Returns whether it is known how the answer begins. */
  #begin(): boolean {
    const begun = this.#held.trimStart()
    if (!begun.startsWith(FENCE)) {
      if (FENCE.startsWith(begun)) return false
      this.#fenced = false
      return true
    }
    this.#awaited = /\n/
    const lineEnd = begun.indexOf('\n')
    if (lineEnd < 0) return false
    this.#fenced = true
    this.#held = begun.slice(lineEnd + 1)
    return true
  }
}

/** Returns where the white space and the backticks at the end of a text begin. */
function endOfContent(text: string): number {
  let end = text.length
  while (end > 0 && /[\s`]/.test(text[end - 1] as string)) end--
  return end
}

/** Returns a whole answer without the code block around it. */
export function unfenced(text: string): string {
  const pieces = new Unfenced()
  return pieces.push(text) + pieces.end()
}
