import { BodyCollector } from '../../core/bytes/index.ts'
import { JsonDigest } from './json-digest.ts'

/** Collects a body without copying it: its chunks as they came, and a digest of its JSON. */
export class DataCollector {
  readonly #body = new BodyCollector()
  readonly #digest = new JsonDigest()

  push(chunk: Buffer): boolean {
    const fits = this.#body.push(chunk)
    if (fits) this.#digest.push(chunk)
    return fits
  }

  get chunks(): readonly Buffer[] {
    return this.#body.chunks
  }

  /** The body's JSON with long strings and long lists of numbers cut short. */
  get digest(): string {
    return this.#digest.text()
  }
}
