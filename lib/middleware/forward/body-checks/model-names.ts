import type { OpenCall, Principal } from '../../../core/call/index.ts'
import { callersNames, compileAllowList, isPattern } from '../../../core/catalog/index.ts'
import { GatewayError } from '../../../core/errors/index.ts'
import { isJsonObject, type JsonObject } from '../../../core/json/index.ts'
import { fieldsOf, isData, partsOfField } from '../../../core/operations/body/references.ts'
import type { Candidate } from '../../../routing/candidates/candidate.ts'

/** Refuses the name of a model that the key of a call may not use. */
export type ModelCheck = (name: string) => void

/**
 * The end of a name whose value names a model: `model`, `models`, `base_model`, `modelId`, `model.id`. The
 * flags i and u also match "ſ", which some upstreams fold to "s".
 */
const MODEL = /models?(?:[_.-]?(?:id|name)s?)?$/iu
/** The allow-list of a key without `allowModels`. */
const ANY_MODEL = compileAllowList(undefined)

/**
 * Returns what refuses the models that the key of a call may not use: by their ids, and by the names that these lines have
 * for them. Undefined if it may use all, so that nothing is searched for them.
 */
export function modelCheck(
  { principal }: OpenCall,
  candidates: readonly Candidate[],
): ModelCheck | undefined {
  if (!principal || principal.mayUseModel === ANY_MODEL) return undefined
  // Names that no line has are not remembered: there may be millions.
  let known: ReadonlyMap<string, boolean> | undefined
  return (name) => {
    // An empty name is none.
    if (name === '') return
    known ??= knownNames(principal, candidates)
    if (!(known.get(name) ?? mayUse(name, principal, candidates))) throw new GatewayError('model_not_allowed')
  }
}

/** Whether a key may use a model by its name here, or by the one that a line has for it. */
function mayUse(name: string, { mayUseModel }: Principal, candidates: readonly Candidate[]): boolean {
  const isAllowed = (id: string): boolean => mayUseModel(id)
  return mayUseModel(name) || candidates.some(({ line }) => callersNames(line, name).some(isAllowed))
}

/** The names that the lines have for models, and whether a key may use one of those models. */
function knownNames(principal: Principal, candidates: readonly Candidate[]): ReadonlyMap<string, boolean> {
  const known = new Map<string, boolean>()
  for (const { line } of candidates)
    for (const [id, name] of line.models)
      if (!isPattern(id) && !known.get(name)) known.set(name, principal.mayUseModel(id))
  return known
}

/** Whether a field of a form or of a query names a model, and no data of the caller's, as `metadata[model]` does. */
export function isModelField(field: string): boolean {
  const parts = partsOfField(field)
  return MODEL.test(parts.join('.')) && !parts.some((part) => isData(part, undefined, {}))
}

/** Checks the models that a query names. A `deployment` is what Azure's Realtime API calls one. */
export function checkQuery(query: URLSearchParams, check: ModelCheck): void {
  for (const [name, value] of fieldsOf(query))
    if (isModelField(name) || name.toLowerCase() === 'deployment') check(value)
}

/** Checks all models that a JSON body names, at any depth. */
export function checkModels(body: object, check: ModelCheck): void {
  const ahead: object[] = [body]
  for (let value = ahead.pop(); value !== undefined; value = ahead.pop()) {
    if (Array.isArray(value)) {
      for (const item of value) if (typeof item === 'object' && item !== null) ahead.push(item)
      continue
    }
    for (const name in value) {
      const member = (value as JsonObject)[name]
      if (typeof member === 'object' && member !== null && !holdsData(name, member, value as JsonObject))
        ahead.push(member)
      if (member !== null && MODEL.test(name)) checkMember(member, check)
    }
  }
}

/** Whether a member holds data of the caller's. The row of an eval does, too. */
function holdsData(name: string, member: unknown, owner: JsonObject): boolean {
  return isData(name, member, owner) || (name === 'item' && owner.type === undefined)
}

/** A model is named by its name, by an object such as `{ id }` or `{ name }`, or by a list of these. Upstreams differ in which they read. */
function checkMember(member: unknown, check: ModelCheck): void {
  if (typeof member === 'string') check(member)
  else if (Array.isArray(member)) for (const item of member) checkMember(item, check)
  else if (isJsonObject(member)) checkMember([member.id, member.name], check)
}
