import { kindOf, type OptionRule } from './option-rules.ts'

/** The rule of each option. */
export type OptionRules<Options> = { readonly [Name in keyof Options]-?: OptionRule }

/**
 * Checks the options of a middleware or a class when it is made, so that a mistake stops the start of the app and not a request. Each
 * message is one line that names the middleware, the option, and what to write instead.
 *
 * @param owner the name of the middleware or class, or of the member that has these options, such as `rateLimit`.
 * @param others `ignored`: other names are no mistakes, as long as they are not like one of the rules.
 * @throws TypeError if they are unusable, have a name that is not known, or are the request of a factory that was mounted
 *   itself.
 */
export function checkOptions<Options extends object>(
  owner: string,
  options: { readonly [Name in keyof Options]: Options[Name] | undefined } | undefined,
  rules: OptionRules<Options>,
  { others = 'refused' }: { others?: 'refused' | 'ignored' } = {},
): void {
  const given: unknown = options === undefined ? {} : options
  if (isRequest(given))
    throw new TypeError(
      `${owner}: the function that makes the middleware was mounted; call it: app.use(${owner}()), not app.use(${owner})`,
    )
  const names = Object.keys(rules)
  if (typeof given !== 'object' || given === null || Array.isArray(given))
    throw new TypeError(
      names.length === 0
        ? `${owner}: it has no options; leave out ${kindOf(given)}`
        : `${owner}: its options must be an object, such as { ${exampleOf(rules)} }, not ${kindOf(given)}`,
    )
  for (const name of Object.keys(given)) {
    if (names.length === 0) throw new TypeError(`${owner}: it has no options; leave out "${name}"`)
    if (Object.hasOwn(rules, name)) continue
    const hint = hintAt(name, names)
    if (others === 'refused' || hint !== '')
      throw new TypeError(
        `${owner}: there is no option "${name}"${hint}; its options are ${names.join(', ')}`,
      )
  }
  for (const name of names) {
    const { be, isNeeded, accepts } = rules[name as keyof Options]
    const value = (given as Record<string, unknown>)[name]
    if (value === undefined ? isNeeded : !accepts(value))
      throw new TypeError(`${owner}: "${name}" must be ${be}, not ${kindOf(value)}`)
  }
}

/** Whether this is the request with which Express calls a factory that was mounted without being called. */
function isRequest(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false
  const { headers, method, socket } = value as Record<string, unknown>
  return typeof headers === 'object' && typeof method === 'string' && socket !== undefined
}

function exampleOf(rules: Readonly<Record<string, OptionRule>>): string {
  const needed = Object.keys(rules).filter((name) => rules[name]?.isNeeded)
  return needed.length > 0 ? needed.join(', ') : `${Object.keys(rules)[0]}: …`
}

/** Names the option that was probably meant. */
function hintAt(name: string, names: readonly string[]): string {
  const wrong = name.toLowerCase()
  const meant = names.find((each) => areAlike(wrong, each.toLowerCase()))
  return meant === undefined ? '' : `; did you mean "${meant}"?`
}

/** Whether two names differ by one letter, by two letters in turn, or by letters that one of them has in addition. */
function areAlike(one: string, other: string): boolean {
  if (one === other || one.startsWith(other) || other.startsWith(one)) return true
  let from = 0
  while (one[from] === other[from]) from++
  const inTurn = one[from] === other[from + 1] && one[from + 1] === other[from]
  const rests = [
    [one.slice(from + 1), other.slice(from)],
    [one.slice(from), other.slice(from + 1)],
    [one.slice(from + 1), other.slice(from + 1)],
  ]
  return rests.some(([a, b]) => a === b) || (inTurn && one.slice(from + 2) === other.slice(from + 2))
}
