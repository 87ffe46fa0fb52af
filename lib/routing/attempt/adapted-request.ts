import type { CallRequest, RequestBody } from '../../core/call/index.ts'
import type { Operation } from '../../core/operations/index.ts'
import { type Translation, translationOf, Untranslatable } from '../../core/translate/index.ts'
import type { Candidate } from '../candidates/candidate.ts'

/** A call's request as a line takes it. The call's own is one, for lines that have its endpoint. */
export interface AdaptedRequest {
  /** The endpoint that is called on the line. */
  readonly operation: Operation
  readonly body: RequestBody
  /** Between the caller's endpoint and the line's; undefined where they are the same. */
  readonly translation?: Translation | undefined
}

/** Output asked for where the caller leaves it open, the line's protocol does not, and the catalogue does not say. */
const DEFAULT_MAX_TOKENS = 4096

/** Adapts a call's request to its lines; each form is made when it is first needed, and once. */
export class RequestAdapter {
  readonly #request: CallRequest
  /** For lines that have the caller's endpoint. */
  readonly #own: AdaptedRequest
  #translated: Map<string, AdaptedRequest | Untranslatable> | undefined
  #fault: Untranslatable | undefined

  /** @param translations those that some of the model's lines need. */
  constructor(request: CallRequest, translations: readonly Translation[]) {
    this.#request = request
    this.#own = translations.length === 0 ? request : withoutForeign(request, translations)
  }

  /** The first member met that cannot be put to a line. */
  get fault(): Untranslatable | undefined {
    return this.#fault
  }

  /** The request for a line, or what of it that line cannot be asked. */
  for({ line, upstreamModel, native }: Candidate): AdaptedRequest | Untranslatable {
    if (native) return this.#own
    const translation = translationOf(this.#request.operation, line)
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

  #translate(translation: Translation, upstreamModel: string): AdaptedRequest | Untranslatable {
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

/** Lines that the request is translated for may have served this conversation before: what they left stays behind. */
function withoutForeign(request: CallRequest, translations: readonly Translation[]): AdaptedRequest {
  const { operation, body } = request
  const met = translations.filter(({ foreign }) => body.raw.includes(foreign))
  if (met.length === 0) return request
  const json = met.reduce((kept, translation) => translation.withoutForeign(kept), body.json)
  // Nested too deep to be written again, it goes out as it came.
  if (!isWritable(json)) return request
  return { operation, body: { raw: Buffer.from(JSON.stringify(json)), json } }
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
