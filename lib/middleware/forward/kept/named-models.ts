import type { Call } from '../../../core/call/index.ts'
import { GatewayError } from '../../../core/errors/index.ts'
import { isJsonObject, type JsonObject } from '../../../core/json/index.ts'
import { fieldsOf, isData } from '../../../core/operations/body/references.ts'
import type { Candidate } from '../../../routing/candidates/candidate.ts'

/** Refuses the name of a model that the key of a call may not use. */
export type ModelJudge = (name: string) => void

/** The end of a name whose value names a model: `model`, `models[]`, `base_model`, `modelId`. */
const MODEL = /models?(?:[_.[-]?(?:id|name)s?)?$/i
const BRACKETS = /(?:\[\d*\]|[\].])+$/

/**
 * Returns what refuses the models that the key of a call may not use: by their ids, and by the names that these lines have
 * for them. Undefined without a key.
 */
export function modelJudge({ principal }: Call, candidates: readonly Candidate[]): ModelJudge | undefined {
  if (!principal) return undefined
  let namedAs: ReadonlyMap<string, readonly string[]> | undefined
  const allowed = new Set<string>()
  return (name) => {
    if (allowed.has(name)) return
    namedAs ??= idsByName(candidates)
    const ids = namedAs.get(name) ?? [name]
    if (!ids.some((id) => principal.mayUseModel(id))) throw new GatewayError('model_not_allowed')
    allowed.add(name)
  }
}

/** The ids of the models that have a name at one of the lines. */
function idsByName(candidates: readonly Candidate[]): ReadonlyMap<string, readonly string[]> {
  const byName = new Map<string, string[]>()
  for (const { line } of candidates)
    for (const [id, name] of line.models) {
      const ids = byName.get(name)
      if (ids) ids.push(id)
      else byName.set(name, [id])
    }
  return byName
}

/** Whether a field of a form or of a query names a model. */
export function isModelField(field: string): boolean {
  return MODEL.test(field.replace(BRACKETS, ''))
}

/** Judges the models that a query names. */
export function judgeQuery(query: URLSearchParams, judge: ModelJudge): void {
  for (const [name, value] of fieldsOf(query)) if (isModelField(name)) judge(value)
}

/** Judges all models that a JSON body names, at any depth. */
export function judgeModels(body: object, judge: ModelJudge): void {
  const ahead: object[] = [body]
  for (let value = ahead.pop(); value !== undefined; value = ahead.pop()) {
    if (Array.isArray(value)) {
      for (const item of value) if (typeof item === 'object' && item !== null) ahead.push(item)
      continue
    }
    for (const name in value) {
      const member = (value as JsonObject)[name]
      if (typeof member === 'object' && member !== null && !isData(name, member, value as JsonObject))
        ahead.push(member)
      if (member !== null && MODEL.test(name)) judgeMember(member, judge)
    }
  }
}

/** A model is named by its name, or by an object such as `{ id }`. */
function judgeMember(member: unknown, judge: ModelJudge): void {
  for (const item of Array.isArray(member) ? member : [member]) {
    const named = isJsonObject(item) ? (item.id ?? item.name) : item
    if (typeof named === 'string') judge(named)
  }
}
