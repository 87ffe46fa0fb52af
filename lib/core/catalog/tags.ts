/** The purposes of a call by name, such as `{ env: 'prod', team: 'search' }`. The names are sorted. */
export type Tags = Readonly<Record<string, string>>

export const NO_TAGS: Tags = Object.freeze({})

export const MAX_TAGS = 16
/** The most bytes of the name of a tag, and of its value. */
export const MAX_TAG_BYTES = 64

// biome-ignore lint/suspicious/noControlCharactersInRegex: no tag has them
const UNTIDY = /[\u0000-\u001f\u007f]|^\s|\s$/
/** A name stands before `=` in the header and in queries, and within quotes in the paths of JSON that stores look up. */
const NOT_IN_NAMES = /[=,"\\]/

/** Whether a tag may have this name. */
export function isTagName(name: string): boolean {
  return isTagValue(name) && !NOT_IN_NAMES.test(name)
}

/** Whether a tag may have this value. */
export function isTagValue(value: string): boolean {
  const bytes = Buffer.byteLength(value)
  return bytes > 0 && bytes <= MAX_TAG_BYTES && !UNTIDY.test(value) && value.isWellFormed()
}

/** Returns what is wrong with the labels that calls are counted by; undefined if they are right. */
export function metricLabelsFault(labels: readonly unknown[]): string | undefined {
  if (!labels.every(isMetricLabel)) return 'must be of "account", "key", "user" and "tag:<name>"'
  // Prometheus writes one character for all that it does not know.
  const names = new Set(labels.map((label) => label.replaceAll(/\W/g, '_')))
  return names.size < labels.length ? 'must have names that differ in letters or digits' : undefined
}

function isMetricLabel(label: unknown): label is string {
  if (typeof label !== 'string') return false
  return /^(account|key|user)$/.test(label) || (label.startsWith('tag:') && isTagName(label.slice(4)))
}

/** Returns tags in the order of their names, so that the same tags are the same JSON. */
export function tagsOf(pairs: Iterable<readonly [string, string]>): Tags {
  const sorted = [...pairs].sort(([one], [other]) => (one < other ? -1 : 1))
  return sorted.length === 0 ? NO_TAGS : Object.freeze(Object.fromEntries(sorted))
}
