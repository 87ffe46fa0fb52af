/** Stands in a pattern for any text. */
const STAR = '*'
/** Stands in an upstream's name for the text that `*` stands for. */
const MATCHED = '$1'

/** The longest name of a model that callers may use. */
const MAX_NAME_LENGTH = 200

/** Whether the id of a model, or a name in the `models` of a line, is a pattern, such as `gpt-*`. */
export function isPattern(id: string): boolean {
  return id.includes(STAR)
}

/** Whether a caller may use a name that only a pattern matches. It comes into logs, reports and paths. */
export function isModelName(name: string): boolean {
  return name.length <= MAX_NAME_LENGTH && /^[\x21-\x7e]+$/.test(name) && !isPattern(name)
}

/** Returns the text that `*` stands for in a name; undefined if the pattern does not match. */
export function matchedBy(pattern: string, name: string): string | undefined {
  const [first = '', last = ''] = pattern.split(STAR)
  const matches = name.length >= first.length + last.length && name.startsWith(first) && name.endsWith(last)
  return matches ? name.slice(first.length, name.length - last.length) : undefined
}

/** Returns patterns with the most specific first: the one with the most characters. */
export function bySpecificity(patterns: Iterable<string>): string[] {
  return [...patterns].filter(isPattern).sort((a, b) => b.length - a.length)
}

/** Whether a pattern, and another one or a name, match a common name. */
export function overlaps(pattern: string, other: string): boolean {
  if (!isPattern(other)) return matchedBy(pattern, other) !== undefined
  const [first = '', last = ''] = pattern.split(STAR)
  const [otherFirst = '', otherLast = ''] = other.split(STAR)
  const startAlike = first.startsWith(otherFirst) || otherFirst.startsWith(first)
  return startAlike && (last.endsWith(otherLast) || otherLast.endsWith(last))
}

/**
 * Returns the faults of the patterns in a list of names: more than one `*`, or two that are equally specific where both match.
 *
 * @param names each with its path.
 */
export function patternFaults(names: readonly (readonly [path: string, name: string])[]): string[] {
  const patterns = names.filter(([, name]) => isPattern(name))
  return patterns.flatMap(([path, name], i) => {
    if (name.split(STAR).length > 2) return [`${path}: can have one "*" only`]
    const equal = patterns
      .slice(0, i)
      .find(([, other]) => other !== name && other.length === name.length && overlaps(other, name))
    return equal ? [`${path}: matches the same names as ${equal[0]}, and neither is more specific`] : []
  })
}

/** Returns the fault of an upstream's name of a model; undefined if there is none. */
export function upstreamNameFault(pattern: string, upstream: string): string | undefined {
  if (isPattern(pattern)) return undefined
  return isPattern(upstream) ? 'has a "*" that the name before it does not have' : undefined
}

type Names = ReadonlyMap<string, string>

/** The patterns of each map, sorted once. */
const sorted = new WeakMap<Names, readonly string[]>()

function patternsOf(names: Names): readonly string[] {
  const patterns = sorted.get(names) ?? bySpecificity(names.keys())
  sorted.set(names, patterns)
  return patterns
}

/**
 * Returns the upstream's name of a model on a line; undefined if the line does not have it. A name of its own comes before
 * patterns, and of these the most specific one decides.
 */
export function upstreamName({ models }: { readonly models: Names }, id: string): string | undefined {
  const own = models.get(id)
  if (own !== undefined) return own
  for (const pattern of patternsOf(models)) {
    const matched = matchedBy(pattern, id)
    if (matched === undefined) continue
    const name = filledIn(models.get(pattern) as string, id, matched)
    // Some upstreams have the name in the path, where these would be another one.
    return name === '' || name === '.' || name === '..' ? undefined : name
  }
  return undefined
}

function filledIn(upstream: string, id: string, matched: string): string {
  if (upstream === STAR) return id
  return upstream.replaceAll(STAR, () => matched).replaceAll(MATCHED, () => matched)
}

/** Whether a line has models whose names it maps by a pattern. */
export function mapsPatterns({ models }: { readonly models: Names }): boolean {
  return patternsOf(models).length > 0
}

/** Whether a line may have a model that a pattern matches. */
export function mayServe({ models }: { readonly models: Names }, pattern: string): boolean {
  return [...models.keys()].some((name) => overlaps(pattern, name))
}

/** Returns the names by which callers reach what a line calls `upstream`, as far as patterns give it one. */
export function callersNames({ models }: { readonly models: Names }, upstream: string): string[] {
  return patternsOf(models).flatMap((pattern) => {
    const template = models.get(pattern) as string
    const name = template === STAR ? upstream : named(pattern, template, upstream)
    return name !== undefined && upstreamName({ models }, name) === upstream ? [name] : []
  })
}

function named(pattern: string, template: string, upstream: string): string | undefined {
  const single = template.replaceAll(MATCHED, STAR)
  if (single.split(STAR).length !== 2) return undefined
  const matched = matchedBy(single, upstream)
  return matched === undefined ? undefined : pattern.replace(STAR, () => matched)
}
