import type { CallRequest, RequestBody } from '../../core/call/index.ts'
import type { UnsupportedPolicy } from '../../core/catalog/index.ts'
import { isJsonObject, type JsonObject, keepingIntegers } from '../../core/json/index.ts'
import type { Operation } from '../../core/operations/index.ts'
import { type Translation, translationOf, Untranslatable } from '../../core/translate/index.ts'
import type { Candidate } from '../candidates/candidate.ts'
import { DroppedMembers } from './dropped-members.ts'

/** A call's request in the form that a line accepts: its own, if the line has the caller's endpoint. */
export interface AdaptedRequest {
  /** The endpoint that is called on the line. */
  readonly operation: Operation
  readonly body: RequestBody
  /** Translates between the caller's endpoint and the line's; undefined if they are the same. */
  readonly translation?: Translation | undefined
  /** The members that were left out because the line's protocol has no counterpart; undefined if there are none. */
  readonly dropped?: readonly string[] | undefined
}

/** The `max_tokens` of a translated request if the protocol requires it and neither caller nor catalogue sets it. */
const DEFAULT_MAX_TOKENS = 4096

/** Adapts a call's request to its lines. Each form is built once, when it is first needed. */
export class RequestAdapter {
  readonly #request: CallRequest
  /** The request for lines that have the caller's endpoint. */
  readonly #own: AdaptedRequest
  #translated: Map<string, AdaptedRequest | Untranslatable> | undefined
  #fault: Untranslatable | undefined

  /** @param translations the translations that some of the model's lines need. */
  constructor(request: CallRequest, translations: readonly Translation[]) {
    this.#request = request
    this.#own = translations.length === 0 ? request : withoutForeign(request, translations)
  }

  /** The first member that could not be translated. */
  get fault(): Untranslatable | undefined {
    return this.#fault
  }

  /** Returns the request for a line, or the member that cannot be translated for it. */
  for({ line, upstreamModel, native }: Candidate): AdaptedRequest | Untranslatable {
    if (native) return this.#own
    const translation = translationOf(this.#request.operation, line)
    if (!translation) return this.#request
    const policy = this.#request.unsupported ?? line.unsupported ?? 'refuse'
    // How some members are translated depends on the model.
    const key = `${translation.to.name} ${policy} ${upstreamModel}`
    this.#translated ??= new Map()
    const known = this.#translated.get(key)
    if (known) return known
    const made = this.#translate(translation, upstreamModel, policy)
    this.#translated.set(key, made)
    return made
  }

  #translate(
    translation: Translation,
    upstreamModel: string,
    policy: UnsupportedPolicy,
  ): AdaptedRequest | Untranslatable {
    const { body, model } = this.#request
    const dropped = policy === 'drop' ? new DroppedMembers(this.#request) : undefined
    try {
      const json = translation.request(writableJson(body), {
        upstreamModel,
        defaultMaxTokens: model.maxOutputTokens ?? DEFAULT_MAX_TOKENS,
        ...(dropped && { leaveOut: (param, what) => dropped.add(param, what) }),
      })
      const raw = Buffer.from(JSON.stringify(json))
      return { operation: translation.to, body: { raw, json }, translation, dropped: dropped?.told }
    } catch (error) {
      if (!(error instanceof Untranslatable)) throw error
      this.#fault ??= error
      return error
    }
  }
}

/** Removes what translated lines left in the conversation earlier, because other lines do not accept it. */
function withoutForeign(request: CallRequest, translations: readonly Translation[]): AdaptedRequest {
  const { operation, body } = request
  const met = translations.filter(({ foreign }) => foreign.some((text) => body.raw.includes(text)))
  if (met.length === 0) return request
  const json = met.reduce((kept, translation) => translation.withoutForeign(kept), writableJson(body))
  return { operation, body: { raw: Buffer.from(JSON.stringify(json)), json } }
}

/** Returns the JSON of a body in a form that can be written again, with integers of any size. */
function writableJson({ raw, json }: RequestBody): JsonObject {
  const kept = keepingIntegers(json, raw)
  return isJsonObject(kept) ? kept : json
}
