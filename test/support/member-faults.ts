type Json = Record<string, unknown>
export type Path = readonly (string | number)[]

/** A value of which one member is missing or has a wrong type. */
export interface MemberFault {
  /** The member, as errors name it, such as `messages[0].content[1].text`. */
  readonly param: string
  readonly what: string
  readonly json: Json
}

/** Values of each type, of which the others are wrong in its place. */
const VALUES: readonly unknown[] = ['nonsense', 7, true, { nonsense: 1 }, [{ nonsense: 1 }], null]

const typeOf = (value: unknown): string =>
  value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value

const paramOf = (path: Path): string =>
  path.map((part, i) => (typeof part === 'number' ? `[${part}]` : i === 0 ? part : `.${part}`)).join('')

/** The name of the object or the list that a member belongs to; empty for a member of the whole. */
export const holderOf = (param: string): string => param.replace(/(?:\.[^.[]*|\[\d+\]|^[^.[]*)$/, '')

/**
 * Removes one member after the other of a value, at every depth, and gives it a value of each wrong type.
 *
 * @param isOpaque whether a member may hold anything, so that nothing is changed inside of it.
 * @param values the values that stand in place of those of other types. Defaults to one of each type.
 */
export function* memberFaults(
  json: Json,
  isOpaque: (path: Path) => boolean = () => false,
  values: readonly unknown[] = VALUES,
): Generator<MemberFault> {
  for (const path of pathsIn(json, [], isOpaque)) {
    const param = paramOf(path)
    if (typeof path.at(-1) === 'string')
      yield faultOf(param, `${param} is missing`, () => changed(json, path, undefined))
    const own = typeOf(valueAt(json, path))
    for (const value of values)
      if (typeOf(value) !== own)
        yield faultOf(param, `${param} is ${JSON.stringify(value)}`, () => changed(json, path, value))
  }
}

/** Most faults of a long value are left out by who asks for them: only the others are made. */
function faultOf(param: string, what: string, make: () => Json): MemberFault {
  let json: Json | undefined
  return {
    param,
    what,
    get json() {
      json ??= make()
      return json
    },
  }
}

function* pathsIn(value: unknown, path: Path, isOpaque: (path: Path) => boolean): Generator<Path> {
  if (path.length > 0) yield path
  if (typeof value !== 'object' || value === null || isOpaque(path)) return
  for (const key of Object.keys(value)) {
    const part = Array.isArray(value) ? Number(key) : key
    yield* pathsIn((value as Json)[key], [...path, part], isOpaque)
  }
}

function valueAt(json: Json, path: Path): unknown {
  return path.reduce<unknown>((value, part) => (value as Json)[part], json)
}

function changed(json: Json, path: Path, value: unknown): Json {
  // A clone would share what the original holds twice.
  const copy = JSON.parse(JSON.stringify(json)) as Json
  const holder = valueAt(copy, path.slice(0, -1)) as Json
  const last = path.at(-1) as string
  if (value === undefined) delete holder[last]
  else holder[last] = structuredClone(value)
  return copy
}

/** Texts that come from a value of JavaScript instead of the other side. */
const NONSENSE = /undefined|\[object |\bNaN\b|^null$/

/** The leaves of a value, by their places without the positions in lists. */
function leavesOf(value: unknown, place = ''): [place: string, leaf: unknown][] {
  if (typeof value !== 'object' || value === null) return [[place, value]]
  return Object.entries(value).flatMap(([key, member]) =>
    leavesOf(member, Array.isArray(value) ? `${place}[]` : `${place}.${key}`),
  )
}

/** The places of texts that no sender wrote: `undefined`, `[object Object]`, `null`, `NaN`. */
export function nonsenseIn(value: unknown): string[] {
  return leavesOf(value).flatMap(([place, leaf]) =>
    typeof leaf === 'string' && NONSENSE.test(leaf) ? [`${place}: ${leaf}`] : [],
  )
}

/** The places that hold 0 or an empty text, and something else where nothing is missing. */
export function inventedIn(value: unknown, whole: unknown): string[] {
  const isEmpty = (leaf: unknown): boolean => leaf === 0 || leaf === ''
  const usual = new Set(leavesOf(whole).flatMap(([place, leaf]) => (isEmpty(leaf) ? [place] : [])))
  return leavesOf(value).flatMap(([place, leaf]) => (isEmpty(leaf) && !usual.has(place) ? [place] : []))
}
