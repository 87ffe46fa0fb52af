import { z } from 'zod'
import type { JsonObject } from '../../json/index.ts'

/** The items of lists that {@link listOf} made. */
const itemOf = new WeakMap<z.core.$ZodType, z.ZodType>()

/**
 * A list whose items {@link bodyFault} checks, up to the first invalid one. `z.array` collects the issues of all items, which
 * for a body of some megabytes can take gigabytes.
 */
export function listOf<Item extends z.ZodType>(item: Item, min = 0, max = Number.POSITIVE_INFINITY) {
  const list = z
    .custom<z.output<Item>[]>(Array.isArray, { error: 'must be a list' })
    .refine(({ length }) => length >= min, { error: 'must not be empty' })
    .refine(({ length }) => length <= max, { error: `must not have more than ${max} items` })
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
  itemOf.set(list, item)
  return list
}

/** The functions that {@link checkedAs} was given. */
const furtherOf = new WeakMap<z.core.$ZodType, (value: never) => z.ZodType | undefined>()

/**
 * An object that {@link bodyFault} checks by a further schema, which depends on it: the members that a part, an item or a tool
 * needs depend on its type. The further schema is not in the JSON schema.
 *
 * @param schemaFor returns the further schema, which is compiled once; undefined for a type that only upstreams know, which is not
 * checked.
 */
export function checkedAs<Base extends z.ZodType>(
  base: Base,
  schemaFor: (value: z.output<Base>) => z.ZodType | undefined,
): Base {
  const checked = base.clone()
  furtherOf.set(checked, schemaFor)
  return checked
}

/** A body of which further members, which may all be absent, are checked if there are any. They are not in the JSON schema. */
export function checkedWith<Base extends z.ZodObject>(base: Base, further: z.ZodObject): Base {
  return checkedAs(base, (body) => {
    for (const name in body) if (Object.hasOwn(further.shape, name)) return further
    return undefined
  })
}

/** Returns one of some schemas by a name, which may be anything that a caller sends. */
export function schemaNamed(
  schemas: Readonly<Record<string, z.ZodType>>,
  name: unknown,
): z.ZodType | undefined {
  return typeof name === 'string' && Object.hasOwn(schemas, name) ? schemas[name] : undefined
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

/** Marks a part, block or tool up to which an Anthropic-style upstream keeps the prompt. */
export const cacheControl = z.looseObject({ type: z.string(), ttl: z.string().optional() }).nullish()

/** A list of texts. */
export const texts = listOf(z.string())

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
  const fault = faultOf(checkOf(schema), json, true)
  return fault && described(fault, [])
}

/** Returns the first fault of a value that stands at a path, without a look at names that differ in case or separators. */
export function valueFault(
  schema: z.ZodType,
  value: unknown,
  path: readonly PropertyKey[],
): BodyFault | undefined {
  const fault = faultOf(checkOf(schema), value, false)
  return fault && described(fault, path)
}

function described({ path, words }: Fault, prefix: readonly PropertyKey[]): BodyFault {
  const param = formatParam([...prefix, ...path])
  return { param, message: `${param}${words}` }
}

function formatParam(path: readonly PropertyKey[]): string {
  let text = ''
  for (const part of path) {
    if (typeof part === 'number') text += `[${part}]`
    else text += text === '' ? String(part) : `.${String(part)}`
  }
  return text.slice(0, 200)
}

/** A fault of a value. */
interface Fault {
  readonly path: readonly PropertyKey[]
  /** The message behind the name of the member. */
  readonly words: string
}

/** How the values of a schema are checked. */
interface Check {
  readonly schema: z.ZodType
  readonly shapes: readonly Shape[]
  readonly furtherFor: ((value: never) => z.ZodType | undefined) | undefined
  /** The schema in the form that checks fastest. Made for the first value. */
  compiled: z.ZodType | undefined
}

/** An object or a list that a schema allows, or a part of it that has a further schema. */
type Shape =
  | { readonly kind: 'part'; readonly check: Check }
  | { readonly kind: 'list'; readonly item: Check }
  | {
      readonly kind: 'object'
      readonly members: ReadonlyMap<string, readonly Shape[]>
      /** The names of the members without case and separators. */
      readonly folded: ReadonlySet<string>
    }

const checks = new WeakMap<z.ZodType, Check>()

function checkOf(schema: z.ZodType): Check {
  let check = checks.get(schema)
  if (!check) {
    check = { schema, shapes: shapesOf(schema), furtherFor: furtherOf.get(schema), compiled: undefined }
    checks.set(schema, check)
  }
  return check
}

/** Returns what a schema allows, without what only says whether it may be absent. */
function shapesOf(schema: z.core.$ZodType): readonly Shape[] {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodNullable) return shapesIn(schema.unwrap())
  if (schema instanceof z.ZodUnion) return schema.options.flatMap(shapesIn)
  const item = itemOf.get(schema)
  if (item) return [{ kind: 'list', item: checkOf(item) }]
  if (!(schema instanceof z.ZodObject)) return []
  const shape: Readonly<Record<string, z.ZodType>> = schema.shape
  const names = Object.keys(shape)
  const members = new Map(names.map((name) => [name, shapesIn(shape[name] as z.ZodType)]))
  return [{ kind: 'object', members, folded: new Set(names.map(foldedName)) }]
}

/** Returns what a part of a schema allows. */
function shapesIn(part: z.core.$ZodType): readonly Shape[] {
  return furtherOf.has(part) ? [{ kind: 'part', check: checkOf(part as z.ZodType) }] : shapesOf(part)
}

/**
 * Returns the first fault of a value: of what is in it, or of itself.
 *
 * @param names whether a member is a fault whose name differs from a checked one only in its case or its separators.
 */
function faultOf(check: Check, value: unknown, names: boolean): Fault | undefined {
  const fault = faultWithin(check.shapes, value, names)
  if (fault) return fault
  check.compiled ??= z.compile(check.schema)
  if (!check.compiled.validate(value)) {
    const { error } = check.schema.safeParse(value, { error: inWords })
    return error && faultIn(error)
  }
  const further = check.furtherFor?.(value as never)
  return further && faultOf(checkOf(further), value, false)
}

function faultWithin(shapes: readonly Shape[], value: unknown, names: boolean): Fault | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  for (const shape of shapes) {
    let fault: Fault | undefined
    if (shape.kind === 'part') fault = faultOf(shape.check, value, names)
    else if (Array.isArray(value))
      fault = shape.kind === 'list' ? faultOfItems(shape.item, value, names) : undefined
    else if (shape.kind === 'object') fault = faultOfMembers(shape, value as JsonObject, names)
    if (fault) return fault
  }
  return undefined
}

function faultOfItems(item: Check, list: readonly unknown[], names: boolean): Fault | undefined {
  for (let i = 0; i < list.length; i++) {
    const fault = faultOf(item, list[i], names)
    if (fault) return { ...fault, path: [i, ...fault.path] }
  }
  return undefined
}

/** No variant of a checked name is longer. */
const MAX_VARIANT_LENGTH = 64

function faultOfMembers(
  { members, folded }: Extract<Shape, { kind: 'object' }>,
  object: JsonObject,
  names: boolean,
): Fault | undefined {
  for (const name in object) {
    const shapes = members.get(name)
    const member = object[name]
    if (shapes) {
      const fault = typeof member === 'object' ? faultWithin(shapes, member, names) : undefined
      if (fault) return { ...fault, path: [name, ...fault.path] }
    } else if (names && name.length <= MAX_VARIANT_LENGTH && folded.has(foldedName(name)))
      return { path: [name], words: VARIANT }
  }
  return undefined
}

const VARIANT = ' is not a known member: its name differs from one that is only in case or separators.'

/** Converts to upper case first: some letters, such as the long s, have their ASCII letter only there. */
function foldedName(name: string): string {
  return name.toUpperCase().toLowerCase().replaceAll(/[_-]/g, '')
}

/** Returns the fault to report: the first one, or for a union that of the best-fitting alternative. */
function faultIn(error: z.ZodError): Fault {
  const issue = mostSpecific(error.issues[0] as z.core.$ZodIssue)
  if (issue.code === 'unrecognized_keys')
    return { path: [...issue.path, issue.keys[0] as string], words: ' is not a known member.' }
  return { path: issue.path, words: `: ${issue.message}.`.replace(/\.\.$/, '.') }
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
