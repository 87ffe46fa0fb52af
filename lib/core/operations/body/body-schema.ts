import { z } from 'zod'

/**
 * A list whose check stops at its first invalid item. `z.array` collects the issues of all items, which for a body of
 * some megabytes can take gigabytes.
 */
export function listOf<Item extends z.ZodType>(item: Item, min = 0, max = Number.POSITIVE_INFINITY) {
  const list = z
    .custom<z.output<Item>[]>(Array.isArray, { error: 'must be a list' })
    .superRefine((list, context) => {
      if (list.length < min) context.addIssue({ code: 'custom', message: 'must not be empty' })
      if (list.length > max) {
        context.addIssue({ code: 'custom', message: `must not have more than ${max} items` })
        return
      }
      for (let i = 0; i < list.length; i++) {
        if (addFaults(context, item, list[i], [i])) return
      }
    })
    .meta({
      type: 'array',
      minItems: min,
      ...(Number.isFinite(max) && { maxItems: max }),
      /** Created only when a schema is asked for. */
      get items() {
        const { $schema: _, ...items } = z.toJSONSchema(item, { io: 'input', unrepresentable: 'any' })
        return items
      },
    })
  itemsOfLists.set(list, item)
  return list
}

/**
 * A value that is checked by a further schema, which depends on it: the members that a part, an item or a tool needs depend
 * on its type. The further schema is not in the JSON schema.
 *
 * @param schemaFor returns the further schema; undefined for a type that only upstreams know, which is not checked.
 */
export function checkedAs<Base extends z.ZodType>(
  base: Base,
  schemaFor: (value: z.output<Base>) => z.ZodType | undefined,
): Base {
  return base.superRefine((value, context) => {
    const further = schemaFor(value)
    if (further) addFaults(context, further, value, [])
  })
}

/** Returns one of some schemas by a name, which may be anything that a caller sends. */
export function schemaNamed(
  schemas: Readonly<Record<string, z.ZodType>>,
  name: unknown,
): z.ZodType | undefined {
  return typeof name === 'string' && Object.hasOwn(schemas, name) ? schemas[name] : undefined
}

/** Adds the faults of a value in a list or an object; returns whether there are any. */
function addFaults(context: z.RefinementCtx, schema: z.ZodType, value: unknown, at: PropertyKey[]): boolean {
  const { error } = schema.safeParse(value, { error: inWords })
  for (const issue of error?.issues ?? []) context.addIssue({ ...issue, path: [...at, ...issue.path] })
  return error !== undefined
}

const TYPE_WORDS: Readonly<Record<string, string>> = {
  string: 'a string',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  object: 'an object',
  record: 'an object',
  array: 'a list',
}

/** Describes a missing or mistyped member: Zod's words name values of JavaScript. */
const inWords: z.core.$ZodErrorMap = (issue) => {
  if (issue.code !== 'invalid_type' && issue.code !== 'invalid_value' && issue.code !== 'invalid_union')
    return undefined
  if (issue.input === undefined) return 'is missing'
  if (issue.code !== 'invalid_type') return undefined
  const words = TYPE_WORDS[issue.expected]
  return words && `must be ${words}`
}

const itemsOfLists = new WeakMap<z.core.$ZodType, z.ZodType>()

/** Returns the schema of the items of a list that {@link listOf} made; undefined for any other schema. */
function itemsOf(schema: z.core.$ZodType): z.ZodType | undefined {
  return itemsOfLists.get(schema)
}

/** Marks a part, block or tool up to which an Anthropic-style upstream keeps the prompt. */
export const cacheControl = z.looseObject({ type: z.string(), ttl: z.string().optional() }).nullish()

/** A list of texts. */
export const texts = z.array(z.string())

/** Why a body is refused. */
interface BodyFault {
  /** The path of the member, such as `messages[1].role`. */
  readonly param: string
  readonly message: string
}

/**
 * Returns the first fault of a request body; undefined if the schema accepts it. Some upstreams read a member such as
 * `Model` or `maxTokens` in place of the one that the schema checks, so such members are a fault, too.
 */
export function bodyFault(schema: z.ZodType, json: unknown): BodyFault | undefined {
  const variant = variantIn(checkedBy(schema), json)
  if (variant) {
    const param = formatParam(variant)
    const message = `${param} is not a known member: its name differs from one that is only in case or separators.`
    return { param, message }
  }
  const { error } = schema.safeParse(json, { error: inWords })
  return error && describeIssue(error)
}

/** Returns the fault to report: the first one, or for a union that of the best-fitting alternative. */
export function describeIssue(error: z.ZodError, prefix: readonly PropertyKey[] = []): BodyFault {
  const issue = mostSpecific(error.issues[0] as z.core.$ZodIssue)
  const path = [...prefix, ...issue.path]
  if (issue.code === 'unrecognized_keys') {
    const param = formatParam([...path, issue.keys[0] as string])
    return { param, message: `${param} is not a known member.` }
  }
  const param = formatParam(path)
  return { param, message: `${param}: ${issue.message}.`.replace(/\.\.$/, '.') }
}

/** Returns the deepest issue among the alternatives of a union: the value fits that alternative up to there. */
function mostSpecific(issue: z.core.$ZodIssue): z.core.$ZodIssue {
  if (issue.code !== 'invalid_union') return issue
  let best: z.core.$ZodIssue | undefined
  for (const inner of issue.errors.flat()) if (inner.path.length > (best?.path.length ?? 0)) best = inner
  if (!best) return issue
  const specific = mostSpecific(best)
  return { ...specific, path: [...issue.path, ...specific.path] }
}

function formatParam(path: readonly PropertyKey[]): string {
  let text = ''
  for (const part of path) {
    if (typeof part === 'number') text += `[${part}]`
    else text += text === '' ? String(part) : `.${String(part)}`
  }
  return text.slice(0, 200)
}

/** The objects and lists that a schema checks, without what only says whether they may be absent. */
type Checked =
  | { readonly kind: 'list'; readonly item: readonly Checked[] }
  | {
      readonly kind: 'object'
      readonly members: ReadonlyMap<string, readonly Checked[]>
      /** The names of the members without case and separators. */
      readonly folded: ReadonlySet<string>
    }

const checkedOfSchema = new WeakMap<z.core.$ZodType, readonly Checked[]>()

/** Returns the alternatives that a schema has. */
function checkedBy(schema: z.core.$ZodType): readonly Checked[] {
  const known = checkedOfSchema.get(schema)
  if (known) return known
  const checked = alternativesOf(schema)
  checkedOfSchema.set(schema, checked)
  return checked
}

function alternativesOf(schema: z.core.$ZodType): readonly Checked[] {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodNullable) return checkedBy(schema.unwrap())
  if (schema instanceof z.ZodUnion) return schema.options.flatMap(checkedBy)
  const item = itemsOf(schema)
  if (item) return [{ kind: 'list', item: checkedBy(item) }]
  if (!(schema instanceof z.ZodObject)) return []
  const { shape } = schema
  const names = Object.keys(shape)
  return [
    {
      kind: 'object',
      members: new Map(names.map((name) => [name, checkedBy(shape[name])])),
      folded: new Set(names.map(foldedName)),
    },
  ]
}

/**
 * Returns the path of the first member, at any depth that the schema checks, whose name differs from a checked one only in
 * its case or its separators.
 */
function variantIn(checked: readonly Checked[], value: unknown): PropertyKey[] | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  const isList = Array.isArray(value)
  for (const each of checked) {
    if (isList !== (each.kind === 'list')) continue
    const path = each.kind === 'list' ? variantInItems(each.item, value) : variantInMembers(each, value)
    if (path) return path
  }
  return undefined
}

function variantInItems(item: readonly Checked[], list: object): PropertyKey[] | undefined {
  if (item.length === 0) return undefined
  for (const [i, value] of (list as unknown[]).entries()) {
    const path = variantIn(item, value)
    if (path) return [i, ...path]
  }
  return undefined
}

/** No variant of a checked name is longer. */
const MAX_VARIANT_LENGTH = 64

function variantInMembers(
  { members, folded }: Extract<Checked, { kind: 'object' }>,
  value: object,
): PropertyKey[] | undefined {
  for (const [name, member] of Object.entries(value)) {
    const checked = members.get(name)
    if (!checked) {
      if (name.length <= MAX_VARIANT_LENGTH && folded.has(foldedName(name))) return [name]
    } else {
      const path = variantIn(checked, member)
      if (path) return [name, ...path]
    }
  }
  return undefined
}

/** Converts to upper case first: some letters, such as the long s, have their ASCII letter only there. */
function foldedName(name: string): string {
  return name.toUpperCase().toLowerCase().replaceAll(/[_-]/g, '')
}
