import type { StreamTranslator, TranslatedUsage } from '../../../core/translate/index.ts'
import { splitAtText } from './delta-template.ts'

/** The caller's events of a translated stream, gathered so that what comes together goes out in one write. */
export class TranslatedEvents {
  readonly #translator: StreamTranslator
  readonly #usage: () => TranslatedUsage
  /** UTF-8 read as latin1, like the text of the line's events, which is copied into it. */
  #gathered = ''
  /** What stands around the text of an event that is copied. */
  #before = ''
  #after = ''

  /** @param usage what the call is charged for, as far as is known when it is asked. */
  constructor(translator: StreamTranslator, usage: () => TranslatedUsage) {
    this.#translator = translator
    this.#usage = usage
  }

  /** The caller's events for one of the line's. Throws what the translator throws. */
  push(json: object | undefined): string {
    return this.#translator.push(json)
  }

  gather(events: string): void {
    this.#gathered += latin1(events)
  }

  /**
   * Takes the event just translated as the pattern of those to come.
   *
   * @returns whether it will do.
   */
  learn(events: string): boolean {
    const member = this.#translator.textMember
    const around = member === undefined ? undefined : splitAtText(latin1(events), member)
    if (!around) return false
    this.#before = around.before
    this.#after = around.after
    return true
  }

  /** Takes the text of an event that fits the pattern, as it stands in the JSON, UTF-8 read as latin1. */
  copy(delta: string): void {
    if (delta === '') return
    this.#translator.copied(delta)
    this.#gathered += this.#before + delta + this.#after
  }

  /** What was gathered since it was last taken. */
  take(): Buffer | undefined {
    if (this.#gathered === '') return undefined
    const bytes = Buffer.from(this.#gathered, 'latin1')
    this.#gathered = ''
    return bytes
  }

  /** What is missing of the caller's stream, now that the answer is whole. */
  end(): Buffer {
    return Buffer.from(this.#translator.end(this.#usage()))
  }
}

function latin1(text: string): string {
  return Buffer.from(text).toString('latin1')
}
