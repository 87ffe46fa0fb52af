import { NO_COUNTERPART } from './hints.ts'

const REFERENCE = 'os.environ/'
const INVALID_IN_HEADER = /[^\t\x20-\x7e\x80-\xff]/

/** No setting of this gateway is larger, and sums of them are exact. */
const MAX = 1_000_000_000_000

export type Mapping = Readonly<Record<string, unknown>>

export function isMapping(value: unknown): value is Mapping {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date)
}

/**
 * A mapping of LiteLLM's file. Each member is read once; {@link reportUnread} names those that nobody has read, so that none is
 * lost silently.
 */
export class Members {
  readonly path: string
  readonly #left: Map<string, unknown>
  readonly #context: Context

  constructor(value: Mapping, path: string, context: Context) {
    this.path = path
    this.#left = new Map(Object.entries(value))
    this.#context = context
  }

  /** Says why a member, or without a name the whole, is not carried over. */
  note(name: string | undefined, text: string): void {
    const path = name === undefined ? this.path : this.path === '' ? name : `${this.path}.${name}`
    this.#context.notes.add(path, text)
  }

  /** The members that nobody has read. */
  get names(): string[] {
    return [...this.#left.keys()]
  }

  has(name: string): boolean {
    return this.#left.get(name) !== undefined && this.#left.get(name) !== null
  }

  /** Returns a member as it is. An empty one counts as missing. */
  take(name: string): unknown {
    const value = this.#left.get(name)
    this.#left.delete(name)
    return value === null || value === '' ? undefined : value
  }

  /** @param loss what is lost without a usable text. */
  text(name: string, loss = 'left out'): string | undefined {
    const value = this.#resolved(name, loss)
    if (value === undefined || typeof value === 'string') return value
    if (typeof value === 'number') return String(value)
    this.note(name, `is no text; ${loss}`)
    return undefined
  }

  /** Returns a number from 0 on. */
  number(name: string, most = MAX): number | undefined {
    const value = this.#resolved(name)
    if (value === undefined) return undefined
    const number = typeof value === 'string' ? Number(value) : value
    if (typeof number === 'number' && number >= 0 && number <= most) return number
    this.note(name, `is no number from 0 to ${most}; left out`)
    return undefined
  }

  count(name: string, least = 1): number | undefined {
    const number = this.number(name)
    if (number === undefined || (Number.isInteger(number) && number >= least)) return number
    this.note(name, `is no whole number from ${least} on; left out`)
    return undefined
  }

  /** Returns a time that LiteLLM gives in seconds, in milliseconds. */
  milliseconds(name: string): number | undefined {
    const seconds = this.number(name)
    if (seconds === undefined) return undefined
    const ms = Math.round(seconds * 1000)
    if (ms >= 1 && ms <= 86_400_000) return ms
    this.note(name, 'is not between a millisecond and a day; left out')
    return undefined
  }

  flag(name: string): boolean | undefined {
    const value = this.#resolved(name)
    if (value === undefined || typeof value === 'boolean') return value
    if (typeof value === 'string' && /^(true|false)$/i.test(value)) return value.toLowerCase() === 'true'
    this.note(name, 'is neither true nor false; left out')
    return undefined
  }

  list(name: string): readonly unknown[] {
    const value = this.take(name)
    if (value === undefined || Array.isArray(value)) return value ?? []
    this.note(name, 'is no list; left out')
    return []
  }

  mapping(name: string): Mapping | undefined {
    const value = this.take(name)
    if (value === undefined || isMapping(value)) return value
    this.note(name, 'is no mapping; left out')
    return undefined
  }

  /** Returns a secret as this gateway writes it: `os.environ/NAME` becomes `env:NAME`. */
  secret(name: string): string | undefined {
    const value = this.take(name)
    if (value === undefined) return undefined
    if (typeof value === 'string' && value.startsWith(REFERENCE))
      return `env:${value.slice(REFERENCE.length)}`
    if (typeof value === 'string' && !INVALID_IN_HEADER.test(value) && !value.startsWith('env:')) return value
    this.note(name, 'cannot be a header; set the member yourself')
    return undefined
  }

  /** Names the members that are left, but for those that are off or empty. */
  reportUnread(hints: Readonly<Record<string, string>>): void {
    for (const [name, value] of this.#left) {
      if (!isOff(value))
        this.note(name, Object.hasOwn(hints, name) ? (hints[name] as string) : NO_COUNTERPART)
    }
    this.#left.clear()
  }

  /** Names the members that are left in one note: for a mapping that holds members of the user's own. */
  reportUnreadTogether(): void {
    const names = [...this.#left].filter(([, value]) => !isOff(value)).map(([name]) => name)
    if (names.length > 0) this.note(undefined, `${NO_COUNTERPART}: ${names.join(', ')}`)
    this.#left.clear()
  }

  #resolved(name: string, loss = 'left out'): unknown {
    const value = this.take(name)
    if (typeof value !== 'string' || !value.startsWith(REFERENCE)) return value
    const variable = value.slice(REFERENCE.length)
    const resolved = this.#context.env[variable]
    if (resolved) return resolved
    this.note(name, `the variable ${variable} is not set; ${loss}: set it and convert again`)
    return undefined
  }
}

/** Whether a member has no effect: it is off, or empty. */
function isOff(value: unknown): boolean {
  if (value === false || value === null || value === '' || value === undefined) return true
  return typeof value === 'object' && !(value instanceof Date) && Object.keys(value).length === 0
}

/** The notes on members that could not be carried over: their paths, and what to do instead. No value is quoted. */
export class Notes {
  readonly lines: string[] = []

  /** @param path such as `model_list[3].litellm_params.rpm`. */
  add(path: string, text: string): void {
    // Paths repeat names of the file, which can hold any character.
    this.lines.push(`${path}: ${text}`.replaceAll(/[\p{Cc}\u2028\u2029]/gu, '?'))
  }
}

/** The objects that each part of the conversion needs. */
export interface Context {
  readonly notes: Notes
  /** The file's own `environment_variables`, then those of this process: `os.environ/NAME` outside of secrets. */
  readonly env: Readonly<Record<string, string | undefined>>
}
