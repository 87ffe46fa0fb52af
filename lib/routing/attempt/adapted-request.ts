import type { CallRequest, RequestBody } from '../../core/call/index.ts'
import { DEFAULT_MAX_TOKENS, type Line, type UnsupportedPolicy } from '../../core/catalog/index.ts'
import { isJsonObject, type JsonObject, keepingIntegers } from '../../core/json/index.ts'
import { chatCompletions, type Operation, referencesIn } from '../../core/operations/index.ts'
import {
  type Translation,
  type Translator,
  translationOf,
  translationsOf,
  Untranslatable,
} from '../../core/translate/index.ts'
import { chatWithMistralIds, hasToolCalls, isMistral } from '../../core/translate/mistral.ts'
import { chatWithoutRouterMembers, hasRouterMembers, isRouter } from '../../core/translate/openrouter.ts'
import type { Candidate } from '../candidates/candidate.ts'

/** A call's request in the form that a line accepts: its own, if the line has the caller's endpoint. */
export interface AdaptedRequest {
  /** The endpoint that is called on the line. */
  readonly operation: Operation
  readonly body: RequestBody
  /** Translates between the caller's endpoint and the line's; undefined if they are the same. */
  readonly translation?: Translation | undefined
  /** The members that were left out, or lessened, because the line has no counterpart; undefined if there are none. */
  readonly dropped?: readonly string[] | undefined
}

/** Adapts a call's request to its lines. Each form is built once, when it is first needed. */
export class RequestAdapter {
  readonly #request: CallRequest
  /** The request for lines that have the caller's endpoint. */
  readonly #own: AdaptedRequest
  readonly #hasRouterMembers: boolean
  #translated: Map<string, AdaptedRequest | Untranslatable> | undefined

  constructor(request: CallRequest) {
    this.#request = request
    this.#own = withoutForeign(request)
    this.#hasRouterMembers = hasRouterMembers(request.operation, request.body.json)
  }

  /** Returns the request for a line, or the member that cannot be translated for it. */
  for({ line, upstreamModel, native }: Candidate): AdaptedRequest | Untranslatable {
    const translation = native ? undefined : translationOf(this.#request.operation, line)
    if (!native && !translation) return this.#request
    const changes: Translator['request'][] = []
    if (translation) changes.push(translation.request)
    else if (this.#hasRouterMembers && !isRouter(line)) changes.push(chatWithoutRouterMembers)
    const operation = translation?.to ?? this.#own.operation
    const isForMistral = operation === chatCompletions && isMistral(line)
    if (isForMistral && hasToolCalls(this.#request.body)) changes.push(chatWithMistralIds)
    if (changes.length === 0) return this.#own
    const policy = this.#policyFor(line)
    // How some members are translated depends on the model.
    const key = `${translation?.to.name ?? 'own'} ${policy} ${isForMistral} ${upstreamModel}`
    return this.#once(key, () => {
      const made = this.#translate(
        (json, context) => changes.reduce((changed, change) => change(changed, context), json),
        translation ? this.#request : this.#own,
        upstreamModel,
        policy,
      )
      return made instanceof Untranslatable || !translation ? made : { ...made, operation, translation }
    })
  }

  #policyFor(line: Line): UnsupportedPolicy {
    return this.#request.unsupported ?? line.unsupported ?? 'refuse'
  }

  #once(key: string, make: () => AdaptedRequest | Untranslatable): AdaptedRequest | Untranslatable {
    this.#translated ??= new Map()
    const made = this.#translated.get(key) ?? make()
    this.#translated.set(key, made)
    return made
  }

  #translate(
    translate: Translator['request'],
    { operation, body }: AdaptedRequest,
    upstreamModel: string,
    policy: UnsupportedPolicy,
  ): AdaptedRequest | Untranslatable {
    const { model } = this.#request
    const dropped = new DroppedMembers(this.#request)
    try {
      const json = translate(writableJson(body), {
        upstreamModel,
        defaultMaxTokens: model.maxOutputTokens ?? DEFAULT_MAX_TOKENS,
        report: (param) => dropped.report(param),
        ...(policy === 'drop' && { leaveOut: (param, what) => dropped.add(param, what) }),
      })
      const raw = Buffer.from(JSON.stringify(json))
      return { operation, body: { raw, json }, dropped: dropped.reported }
    } catch (error) {
      if (!(error instanceof Untranslatable)) throw error
      return error
    }
  }
}

/**
 * Removes what translated lines left in the conversation earlier, because other lines do not accept it. They may be lines of
 * another model: callers change it within a conversation.
 */
function withoutForeign(request: CallRequest): AdaptedRequest {
  const { operation, body } = request
  const met = translationsOf(operation).filter((translation) =>
    translation.mayHaveForeign(body.json, body.raw),
  )
  if (met.length === 0) return request
  const json = met.reduce((kept, translation) => translation.withoutForeign(kept), writableJson(body))
  return { operation, body: { raw: Buffer.from(JSON.stringify(json)), json } }
}

/** Returns the JSON of a body in a form that can be written again, with integers of any size. */
function writableJson({ raw, json }: RequestBody): JsonObject {
  const kept = keepingIntegers(json, raw)
  return isJsonObject(kept) ? kept : json
}

/** The most members that are named, and the most characters of each. */
const MAX_REPORTED = 20
const MAX_PATH_LENGTH = 60

/** Collects the members of a request that are left out, or lessened, for a line. */
export class DroppedMembers {
  readonly #request: Pick<CallRequest, 'body' | 'references'>
  readonly #reported: string[] = []
  #count = 0

  constructor(request: Pick<CallRequest, 'body' | 'references'>) {
    this.#request = request
  }

  /**
   * Leaves out a member.
   *
   * @throws {Untranslatable} if it names something that an upstream keeps: without it, the request is about another thing.
   */
  add(param: string, what?: string): void {
    const { body, references } = this.#request
    if (references.length > 0 && namesSomething(body.json, param)) throw new Untranslatable(param, what)
    this.report(param)
  }

  /** Notes a member that the line gets weaker than it is meant, or not at all. */
  report(param: string): void {
    if (this.#count++ < MAX_REPORTED) this.#reported.push(headerSafe(param))
  }

  /** The paths of the first members, and how many more there are; undefined if there is none. */
  get reported(): readonly string[] | undefined {
    if (this.#count === 0) return undefined
    return this.#count > MAX_REPORTED ? [...this.#reported, `+${this.#count - MAX_REPORTED}`] : this.#reported
  }
}

/** Whether a member names something that an upstream keeps; true of one that is not found. */
function namesSomething(json: JsonObject, param: string): boolean {
  const names = Object.hasOwn(json, param) ? [param] : (param.match(/[^.[\]]+/g) ?? [])
  let holder = ''
  let value: unknown = json
  for (const name of names) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return true
    if (!Array.isArray(value)) holder = name
    value = (value as JsonObject)[name]
  }
  const isItem = /^\d+$/.test(names.at(-1) ?? '')
  return referencesIn({ [holder]: isItem ? [value] : value }).length > 0
}

/** Names of members can hold any character; those of a path that a header cannot hold are replaced. */
function headerSafe(path: string): string {
  const kept = path.length > MAX_PATH_LENGTH ? `${path.slice(0, MAX_PATH_LENGTH - 1)}~` : path
  return kept.replaceAll(/[^\w.[\]$~-]/g, '?')
}
