import type { CallRequest, RequestBody } from '../../core/call/index.ts'
import { type Operation, servesNatively } from '../../core/operations/index.ts'
import {
  type Translation,
  translationOf,
  translationsOf,
  Untranslatable,
} from '../../core/translate/index.ts'
import type { Candidate } from '../candidates/candidate.ts'

/** A call's request as it is put to a line. The call's own is one, for lines that have its endpoint. */
export interface SpokenRequest {
  /** The endpoint that is called on the line. */
  readonly operation: Operation
  readonly body: RequestBody
  /** Between the caller's endpoint and the line's; undefined where they are the same. */
  readonly translation?: Translation | undefined
}

/** Output asked for where the caller leaves it open, the line's protocol does not, and the catalogue does not say. */
const DEFAULT_MAX_TOKENS = 4096

/** A call's request as its lines can be asked it; each is made when it is first needed, and once. */
export class SpokenRequests {
  readonly #request: CallRequest
  readonly #candidates: readonly Candidate[]
  /** For lines that have the caller's endpoint. */
  #own: SpokenRequest | undefined
  #translated: Map<string, SpokenRequest | Untranslatable> | undefined
  #fault: Untranslatable | undefined

  /** @param candidates all of the model's. */
  constructor(request: CallRequest, candidates: readonly Candidate[]) {
    this.#request = request
    this.#candidates = candidates
  }

  /** The first member met that cannot be put to a line. */
  get fault(): Untranslatable | undefined {
    return this.#fault
  }

  /** The request for a line, or what of it that line cannot be asked. */
  for({ line, upstreamModel }: Candidate): SpokenRequest | Untranslatable {
    const { operation } = this.#request
    if (servesNatively(line, operation)) {
      this.#own ??= this.#forOwnLines()
      return this.#own
    }
    const translation = translationOf(operation, line)
    if (!translation) return this.#request
    // Some members depend on the model: not all models of a protocol take the same.
    const key = `${translation.to.name} ${upstreamModel}`
    this.#translated ??= new Map()
    const known = this.#translated.get(key)
    if (known) return known
    const made = this.#translate(translation, upstreamModel)
    this.#translated.set(key, made)
    return made
  }

  /** The call's own request, unless lines that it is translated for have served this conversation before. */
  #forOwnLines(): SpokenRequest {
    const { operation, body } = this.#request
    const strangers = translationsOf(operation).filter(
      ({ to, foreign }) => this.#isNeeded(to) && body.raw.includes(foreign),
    )
    if (strangers.length === 0) return this.#request
    const json = strangers.reduce((kept, { withoutForeign }) => withoutForeign(kept), body.json)
    // Nested too deep to be written again, it goes out as it came.
    if (!isWritable(json)) return this.#request
    return { operation, body: { raw: Buffer.from(JSON.stringify(json)), json } }
  }

  /** Whether one of the lines has this endpoint and not the caller's. */
  #isNeeded(to: Operation): boolean {
    const { operation } = this.#request
    return this.#candidates.some(({ line }) => servesNatively(line, to) && !servesNatively(line, operation))
  }

  #translate(translation: Translation, upstreamModel: string): SpokenRequest | Untranslatable {
    const { body, model } = this.#request
    try {
      const json = translation.request(body.json, {
        upstreamModel,
        defaultMaxTokens: model.maxOutputTokens ?? DEFAULT_MAX_TOKENS,
      })
      const raw = Buffer.from(JSON.stringify(json))
      return { operation: translation.to, body: { raw, json }, translation }
    } catch (error) {
      const fault = error instanceof RangeError ? tooDeep(body.json) : error
      if (!(fault instanceof Untranslatable)) throw fault
      this.#fault ??= fault
      return fault
    }
  }
}

/** What is nested too deep to be written again: JSON is read without recursion, but not written. */
function tooDeep(json: RequestBody['json']): Untranslatable {
  return new Untranslatable(Object.keys(json).find((member) => !isWritable(json[member])) ?? 'messages')
}

function isWritable(value: unknown): boolean {
  try {
    JSON.stringify(value)
    return true
  } catch {
    return false
  }
}
