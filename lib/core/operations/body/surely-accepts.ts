import type { z } from 'zod'
import { itemsOf } from './list-of.ts'

/** A compiled schema. `maybe`: only zod can tell what the schema accepts. */
type Rule = { readonly optional?: true; readonly nullable?: true } & (
  | { readonly kind: 'maybe' | 'boolean' | 'any' }
  | { readonly kind: 'string' | 'number' | 'integer'; readonly least: number; readonly most: number }
  | { readonly kind: 'one of'; readonly values: ReadonlySet<unknown> }
  | { readonly kind: 'either'; readonly rules: readonly Rule[] }
  | { readonly kind: 'list'; readonly item: Rule; readonly least: number; readonly most: number }
  | {
      readonly kind: 'object'
      readonly names: readonly string[]
      readonly known: ReadonlySet<string>
      /** The names without case and separators. */
      readonly folded: ReadonlySet<string>
      readonly members: readonly Rule[]
      readonly refinements: readonly ((value: unknown) => unknown)[]
    }
)

const ruleOfSchema = new WeakMap<z.ZodType, Rule>()

/**
 * Whether a schema surely accepts a JSON value. Unlike `safeParse`, it makes no copy of the value, which is most of the
 * cost. If it returns false, call `safeParse`: the schema may refuse the value, or be of a kind unknown here.
 */
export function surelyAccepts(schema: z.ZodType, value: unknown): boolean {
  return accepts(ruleOfSchema.get(schema) ?? compiled(schema), value)
}

/**
 * Returns the path of the first member whose name differs from one that the schema judges in its case or its separators
 * only, such as `Model` or `maxTokens`; undefined if there is none. Some upstreams read such a member in place of the
 * one that was judged. {@link surelyAccepts} accepts no value that has one.
 */
export function variantIn(schema: z.ZodType, value: unknown): PropertyKey[] | undefined {
  return variantBelow(ruleOfSchema.get(schema) ?? compiled(schema), value)
}

function compiled(schema: z.ZodType): Rule {
  const rule = ruleOf(schema)
  ruleOfSchema.set(schema, rule)
  return rule
}

function accepts(rule: Rule, value: unknown): boolean {
  if (value === undefined) return rule.optional === true
  if (value === null) return rule.nullable === true
  switch (rule.kind) {
    case 'maybe':
      return false
    case 'any':
      return true
    case 'boolean':
      return typeof value === 'boolean'
    case 'string':
      return typeof value === 'string' && value.length >= rule.least && value.length <= rule.most
    case 'number':
      return Number.isFinite(value) && (value as number) >= rule.least && (value as number) <= rule.most
    case 'integer':
      return Number.isSafeInteger(value) && (value as number) >= rule.least && (value as number) <= rule.most
    case 'one of':
      return rule.values.has(value)
    case 'either':
      for (let i = 0; i < rule.rules.length; i++) if (accepts(rule.rules[i] as Rule, value)) return true
      return false
    case 'list':
      if (!Array.isArray(value) || value.length < rule.least || value.length > rule.most) return false
      for (let i = 0; i < value.length; i++) if (!accepts(rule.item, value[i])) return false
      return true
    case 'object': {
      if (typeof value !== 'object' || Array.isArray(value)) return false
      const { names, members, refinements, known } = rule
      for (const name in value) if (!known.has(name) && isVariant(rule, name)) return false
      for (let i = 0; i < names.length; i++) {
        const member = (value as Record<string, unknown>)[names[i] as string]
        if (!accepts(members[i] as Rule, member)) return false
      }
      for (let i = 0; i < refinements.length; i++) if (refinements[i]?.(value) !== true) return false
      return true
    }
  }
}

type ObjectRule = Extract<Rule, { readonly kind: 'object' }>

/** No variant of a judged name is longer. */
const MAX_VARIANT_LENGTH = 64

/** Whether a name is none that the rule judges, but reads like one. */
function isVariant({ folded }: Pick<ObjectRule, 'folded'>, name: string): boolean {
  return name.length <= MAX_VARIANT_LENGTH && folded.has(foldedName(name))
}

/** Upper case first: some letters, such as the long s, have their ASCII letter only there. */
function foldedName(name: string): string {
  return name.toUpperCase().toLowerCase().replaceAll(/[_-]/g, '')
}

function variantBelow(rule: Rule, value: unknown): PropertyKey[] | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  if (rule.kind === 'either') {
    for (const each of rule.rules) {
      const path = variantBelow(each, value)
      if (path) return path
    }
  } else if (rule.kind === 'list' && Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) {
      const path = variantBelow(rule.item, value[i])
      if (path) return [i, ...path]
    }
  } else if (rule.kind === 'object' && !Array.isArray(value)) {
    for (const name in value) if (!rule.known.has(name) && isVariant(rule, name)) return [name]
    for (const [i, name] of rule.names.entries()) {
      const path = variantBelow(rule.members[i] as Rule, (value as Record<string, unknown>)[name])
      if (path) return [name, ...path]
    }
  }
  return undefined
}

const MAYBE: Rule = { kind: 'maybe' }

function ruleOf(schema: z.core.$ZodType): Rule {
  const list = itemsOf(schema)
  if (list) return { kind: 'list', item: ruleOf(list.item), least: list.min, most: list.max }
  const { def } = (schema as z.core.$ZodTypes)._zod
  switch (def.type) {
    case 'optional':
      return { ...ruleOf(def.innerType), optional: true }
    case 'nullable':
      return { ...ruleOf(def.innerType), nullable: true }
    case 'unknown':
      return { kind: 'any', nullable: true }
    case 'boolean':
      return def.checks?.length ? MAYBE : { kind: 'boolean' }
    case 'enum':
      return { kind: 'one of', values: new Set(Object.values(def.entries)) }
    case 'union':
      return { kind: 'either', rules: def.options.map(ruleOf) }
    case 'string':
      return boundedRule('string', def.checks)
    case 'number':
      if (!('format' in def)) return boundedRule('number', def.checks)
      return def.format === 'safeint' ? boundedRule('integer', def.checks) : MAYBE
    case 'object':
      return objectRule(def)
    default:
      return MAYBE
  }
}

/** Returns the rule of a text with a bounded length, or of a number with bounds. */
function boundedRule(
  kind: 'string' | 'number' | 'integer',
  checks: readonly z.core.$ZodCheck<never>[] | undefined,
): Rule {
  let least = Number.NEGATIVE_INFINITY
  let most = Number.POSITIVE_INFINITY
  for (const check of checks ?? []) {
    const { def } = (check as unknown as z.core.$ZodChecks)._zod
    if (def.check === 'min_length') least = Math.max(least, def.minimum)
    else if (def.check === 'max_length') most = Math.min(most, def.maximum)
    else if (def.check === 'greater_than' && def.inclusive) least = Math.max(least, Number(def.value))
    else if (def.check === 'less_than' && def.inclusive) most = Math.min(most, Number(def.value))
    else return MAYBE
  }
  return { kind, least, most }
}

/** Returns the rule of an object that may have further members. */
function objectRule({ shape, catchall, checks }: z.core.$ZodObjectDef): Rule {
  const refinements: ((value: unknown) => unknown)[] = []
  for (const check of checks ?? []) {
    const { def } = (check as unknown as z.core.$ZodChecks)._zod
    if (!('fn' in def && typeof def.fn === 'function')) return MAYBE
    refinements.push(def.fn as (value: unknown) => unknown)
  }
  if (catchall?._zod.def.type !== 'unknown') return MAYBE
  const names = Object.keys(shape)
  return {
    kind: 'object',
    names,
    known: new Set(names),
    folded: new Set(names.map(foldedName)),
    members: names.map((name) => ruleOf(shape[name] as never)),
    refinements,
  }
}
