import { didYouMean } from './did-you-mean.ts'

export interface OptionRule {
  /** Completes the sentence `"name" must be …`, so that the reader knows how to fix the option. */
  readonly be: string
  readonly isNeeded?: boolean
  accepts(value: unknown): boolean
}

/** An option that cannot be left out. */
export function required(rule: OptionRule): OptionRule {
  return { ...rule, isNeeded: true }
}

export function aFunction(be = 'a function'): OptionRule {
  return { be, accepts: isFunction }
}

/** An object, or one of its class, that has these methods. */
export function anObjectWith(be: string, ...methods: readonly [string, ...string[]]): OptionRule {
  return {
    be,
    accepts: (value) =>
      typeof value === 'object' &&
      value !== null &&
      // An array has a "find" too.
      !Array.isArray(value) &&
      methods.every((method) => isFunction((value as Record<string, unknown>)[method])),
  }
}

export function oneOf(...values: readonly (string | boolean)[]): OptionRule {
  const named = values.map((value) => JSON.stringify(value))
  const last = named.pop()
  const be = named.length === 0 ? `${last}` : `${named.join(', ')} or ${last}`
  return { be, accepts: (value) => values.some((each) => each === value) }
}

export function aString(): OptionRule {
  return { be: 'a string that is not empty', accepts: (value) => typeof value === 'string' && value !== '' }
}

export function anArray(be: string): OptionRule {
  return { be, accepts: Array.isArray }
}

/** A list of objects that have these members as strings. */
export function aListOf(be: string, ...members: readonly string[]): OptionRule {
  const fits = (item: unknown): boolean =>
    typeof item === 'object' &&
    item !== null &&
    members.every((name) => typeof (item as Record<string, unknown>)[name] === 'string')
  return { be, accepts: (value) => Array.isArray(value) && value.every(fits) }
}

/** An object that is no array. */
export function anObject(be: string): OptionRule {
  return { be, accepts: (value) => typeof value === 'object' && value !== null && !Array.isArray(value) }
}

export const aLogger = anObjectWith(
  'a logger with "info", "warn" and "error", such as pino()',
  'info',
  'warn',
  'error',
)

/** The longest time that a timer can wait: with a longer one it would fire at once. */
export const MAX_TIMER_MS = 2 ** 31 - 1

/** A time that a timer waits, in milliseconds. */
export const someMilliseconds = aWholeNumber(
  `a positive whole number of milliseconds, at most ${MAX_TIMER_MS} (24 days)`,
  1,
  MAX_TIMER_MS,
)

/** How long something is kept, in milliseconds. No timer waits for its end. */
export const aKeepTime = aWholeNumber('a positive whole number of milliseconds', 1)

/** How often a store is read, in milliseconds: changes take effect within 5 s. */
export const aPollTime = aNumber('above 0 and at most 4000', Number.MIN_VALUE, 4000)

/** A number from `least` to `most`, both included. */
export function aNumber(be: string, least: number, most = Number.POSITIVE_INFINITY): OptionRule {
  return { be, accepts: (value) => typeof value === 'number' && value >= least && value <= most }
}

/** A whole number from `least` to `most`, both included. */
export function aWholeNumber(be: string, least: number, most = Number.MAX_SAFE_INTEGER): OptionRule {
  return {
    be,
    accepts: (value) =>
      Number.isSafeInteger(value) && (value as number) >= least && (value as number) <= most,
  }
}

/** Names what a value is, and shows no text of it, which may be a secret. */
export function kindOf(value: unknown): string {
  if (value === null || value === undefined || typeof value === 'boolean') return String(value)
  if (typeof value === 'number') return `the number ${value}`
  if (Array.isArray(value)) return value.length === 0 ? 'an empty array' : 'an array'
  if (value === '') return 'an empty string'
  if (typeof value === 'object') return value instanceof Promise ? 'a promise: await it first' : 'an object'
  return `a ${typeof value}`
}

function isFunction(value: unknown): boolean {
  return typeof value === 'function'
}

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
    const hint = didYouMean(name, names)
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
