/** More repetitions than this are refused. */
const MAX_REPEATS = 100

/** What Anthropic's expressions lack: look-arounds and other special groups, lazy quantifiers, and most escapes. */
const SPECIAL = /\(\?(?!:)|[*+?}][?+]|\\(?![dDsSwWnrt\\/.^$*+?()[\]{}|-])/

/** Whether Anthropic accepts a regular expression: one of classes, groups, choices and small repetitions. */
export function isPlainPattern(pattern: unknown): boolean {
  if (typeof pattern !== 'string' || SPECIAL.test(pattern)) return false
  for (const [, counts = ''] of pattern.matchAll(/\{([\d,]*)\}/g))
    if (counts.split(',').some((count) => Number(count) > MAX_REPEATS)) return false
  try {
    new RegExp(pattern, 'u')
    return true
  } catch {
    return false
  }
}
