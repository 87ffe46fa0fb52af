import type { StreamTranslator, TranslatedUsage } from '../../../core/translate/index.ts'
import { splitAtText } from './delta-template.ts'

/** Collects the caller's events of a translated stream, so that those of one turn go out in one write. */
export class TranslatedEvents {
  readonly #translator: StreamTranslator
  readonly #usage: () => TranslatedUsage
  /** UTF-8 read as latin1, because the text of the line's events is copied into it. */
  #gathered = ''
  /** The parts of an event before and after its text, for events whose text is copied. */
  #before = ''
  #after = ''

  #finishNumber: number | undefined

  /** @param usage returns the usage that the call is charged for, as far as it is known. */
  constructor(translator: StreamTranslator, usage: () => TranslatedUsage) {
    this.#translator = translator
    this.#usage = usage
  }

  /** The number of the caller's next event. Those from the finish on are not counted: they may stay unsent. */
  get nextEventNumber(): number | undefined {
    return this.#finishNumber ?? this.#translator.nextEventNumber
  }

  get skipped(): number {
    return this.#translator.skipped
  }

  /**
   * Returns the caller's events for one event of the line. Throws what the translator throws.
   *
   * @param isFinish whether the answer has finished, so that the events are held back.
   */
  push(json: object | undefined, isFinish: boolean): string {
    if (isFinish) this.#finishNumber ??= this.#translator.nextEventNumber
    return this.#translator.push(json)
  }

  gather(events: string): void {
    this.#gathered += latin1(events)
  }

  /**
   * Takes the event just translated as the pattern of later ones.
   *
   * @returns whether it can serve as a pattern.
   */
  learn(events: string): boolean {
    const member = this.#translator.textMember
    const around = member === undefined ? undefined : splitAtText(latin1(events), member)
    if (!around) return false
    this.#before = around.before
    this.#after = around.after
    return true
  }

  /**
   * Adds an event that matches the pattern.
   *
   * @param delta its text as written in the JSON, as UTF-8 read as latin1.
   */
  copy(delta: string): void {
    if (delta === '') return
    this.#translator.copied(delta)
    this.#gathered += this.#before + delta + this.#after
  }

  /** Returns the events gathered since the last call. */
  take(): Buffer | undefined {
    if (this.#gathered === '') return undefined
    const bytes = Buffer.from(this.#gathered, 'latin1')
    this.#gathered = ''
    return bytes
  }

  /** Returns the events that complete the caller's stream. */
  end(): Buffer {
    this.#finishNumber ??= this.#translator.nextEventNumber
    return Buffer.from(this.#translator.end(this.#usage()))
  }
}

function latin1(text: string): string {
  return Buffer.from(text).toString('latin1')
}
