import { addFallback, type Groups } from './groups.ts'
import { isId } from './line-settings.ts'
import { isMapping, type Members } from './members.ts'
import type { Context } from './notes.ts'
import type { Settings } from './settings.ts'

/** The models that aliases stand for, by alias. */
export type Aliases = ReadonlyMap<string, string>

export function readAliases(router: Members, { notes }: Context): Aliases {
  const aliases = new Map<string, string>()
  for (const [alias, value] of Object.entries(router.mapping('model_group_alias') ?? {})) {
    const path = pathOf(alias)
    const target = isMapping(value) ? value.model : value
    if (!isId(alias)) notes.add(path, 'must be printable ASCII without spaces; left out')
    else if (typeof target !== 'string') notes.add(path, 'names no model; left out')
    else aliases.set(alias, target)
    if (isMapping(value) && value.hidden)
      notes.add(`${path}.hidden`, 'no model is hidden: GET /v1/models has it')
  }
  return aliases
}

/** Adds a model for each alias, on the lines of the model that it stands for. */
export function addAliases(groups: Groups, aliases: Aliases, { notes }: Context): void {
  for (const [alias, target] of aliases) {
    const lines = groups.get(target)
    if (!lines) notes.add(pathOf(alias), `no line was made for ${target}; left out`)
    else if (groups.has(alias)) notes.add(pathOf(alias), 'is a model itself; the alias is left out')
    else
      groups.set(
        alias,
        lines.map((line) => ({ ...line, model: alias })),
      )
  }
}

function pathOf(alias: string): string {
  return `router_settings.model_group_alias.${alias}`
}

/** What LiteLLM tries after a model. */
export interface Fallback {
  readonly path: string
  /** `*` = each model that has no fallbacks of its own. */
  readonly model: string
  readonly targets: readonly unknown[]
}

export function readFallbacks(settings: Settings): Fallback[] {
  const members = settings.either('fallbacks')
  const fallbacks = (members?.list('fallbacks') ?? []).flatMap((entry, i) =>
    Object.entries(isMapping(entry) ? entry : {}).map(([model, targets]) => ({
      path: `${members?.path}.fallbacks[${i}].${model}`,
      model,
      targets: Array.isArray(targets) ? targets : [targets],
    })),
  )
  const usual = settings.either('default_fallbacks')
  if (!usual) return fallbacks
  const path = `${usual.path}.default_fallbacks`
  return [...fallbacks, { path, model: '*', targets: usual.list('default_fallbacks') }]
}

/** Adds the lines of fallbacks to the models that fall back. */
export function addFallbacks(
  groups: Groups,
  fallbacks: readonly Fallback[],
  aliases: Aliases,
  context: Context,
): void {
  const real = (name: string): string => aliases.get(name) ?? name
  const named = new Set(fallbacks.map(({ model }) => real(model)))
  for (const { path, model, targets } of fallbacks) {
    const models = model === '*' ? [...groups.keys()].filter((id) => !named.has(id)) : [real(model)]
    for (const one of models) {
      if (!groups.has(one)) context.notes.add(path, `no line was made for ${one}, so it has no fallbacks`)
      else
        for (const target of targets)
          if (typeof target !== 'string')
            context.notes.add(path, 'a fallback must be the name of a model; this one is left out')
          else if (real(target) !== one) addFallback(groups, one, real(target), path, context)
    }
  }
}
