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
  return (name) => {
    const all = candidates.flatMap(({ line }) => [...line.models])
    const ids = all.filter(([, upstreamName]) => upstreamName === name).map(([id]) => id)
    const known = ids.length > 0 ? ids : [name]
    if (!known.some((id) => principal.mayUseModel(id))) throw new GatewayError('model_not_allowed')
  }
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
