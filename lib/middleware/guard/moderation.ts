import { aFunction, anObject, aString, checkOptions, type OptionRules } from '../../core/options/index.ts'
import type { Decision, GuardFunction } from './checker.ts'

/** Options of {@link moderation}. */
export interface ModerationOptions {
  /** The base address of an OpenAI-style service, such as `https://api.openai.com/v1`. */
  baseUrl: string
  /** Its key. Defaults to none. */
  apiKey?: string
  /** The model. Defaults to the one that the service chooses. */
  model?: string
  /** Further headers. Defaults to none. */
  headers?: Readonly<Record<string, string>>
  /** Sends the request. Defaults to the `fetch` of Node. */
  fetch?: typeof globalThis.fetch
}

const RULES: OptionRules<ModerationOptions> = {
  baseUrl: {
    be: 'an address, such as "https://api.openai.com/v1"',
    isNeeded: true,
    accepts: (value) => typeof value === 'string' && /^https?:$/.test(URL.parse(value)?.protocol ?? ''),
  },
  apiKey: aString(),
  model: aString(),
  headers: anObject('an object of headers'),
  fetch: aFunction('a function such as fetch'),
}

interface ModerationAnswer {
  readonly results?: readonly {
    readonly flagged?: unknown
    readonly categories?: Readonly<Record<string, unknown>>
  }[]
}

/**
 * Returns a function for `guard` that asks an OpenAI-style `/moderations` about each text, and refuses what it flags.
 *
 * @throws TypeError at construction when an option is unusable.
 * @example
 * guard({ input: moderation({ baseUrl: 'https://api.openai.com/v1', apiKey: process.env.OPENAI_API_KEY }) })
 */
export function moderation(options: ModerationOptions): GuardFunction {
  checkOptions('moderation', options, RULES)
  const { baseUrl, apiKey, model, headers: more, fetch = globalThis.fetch } = options
  const address = `${baseUrl.replace(/\/+$/, '')}/moderations`
  const headers = {
    'content-type': 'application/json',
    ...(apiKey !== undefined && { authorization: `Bearer ${apiKey}` }),
    ...more,
  }

  return async function moderation(input, call): Promise<Decision> {
    const left = new AbortController()
    const onLeave = (): void => left.abort()
    call.onLeave(onLeave)
    try {
      const response = await fetch(address, {
        method: 'POST',
        headers,
        body: JSON.stringify({ input, ...(model !== undefined && { model }) }),
        signal: AbortSignal.any([left.signal, AbortSignal.timeout(MAX_MS)]),
      })
      if (response.status !== 200) {
        await response.body?.cancel()
        throw new Error(`the moderation service answered ${response.status}`)
      }
      const { results } = (await response.json()) as ModerationAnswer
      // A list without a result decides nothing.
      const isDecided = Array.isArray(results) && results.length > 0
      if (!isDecided || results.some(({ flagged }) => typeof flagged !== 'boolean'))
        throw new Error('the moderation service did not answer with results')
      const flagged = results.filter(({ flagged }) => flagged === true)
      if (flagged.length === 0) return 'allow'
      const names = flagged.flatMap(({ categories = {} }) =>
        Object.keys(categories).filter((name) => categories[name] === true),
      )
      return { refuse: names.length > 0 ? [...new Set(names)].join(', ') : 'it was flagged' }
    } finally {
      call.offLeave(onLeave)
    }
  }
}

/** `guard` waits for no check for so long. */
const MAX_MS = 60_000
