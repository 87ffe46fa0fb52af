const FENCE = '```'

/** Removes the code block around an answer that comes in pieces. Text without one comes out as it is. */
export class Unfenced {
  /** Undefined until it is known whether the answer begins with a code block. */
  #fenced: boolean | undefined
  /** What may belong to the beginning or to the end of a code block. */
  #held = ''

  /** Returns the text that can be sent. */
  push(text: string): string {
    this.#held += text
    if (this.#fenced === undefined && !this.#begin()) return ''
    return this.#fenced ? this.#take(endOfContent(this.#held)) : this.#take(this.#held.length)
  }

  /** Returns the rest. */
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
    const lineEnd = begun.indexOf('\n')
    if (lineEnd < 0) return false
    this.#fenced = true
    this.#held = begun.slice(lineEnd + 1)
    return true
  }

  #take(length: number): string {
    const taken = this.#held.slice(0, length)
    this.#held = this.#held.slice(length)
    return taken
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
