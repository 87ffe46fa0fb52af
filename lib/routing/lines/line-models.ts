import { type Logger, quietLogger } from '../../core/call/index.ts'
import { type Catalog, callersNames, type Line, mapsPatterns } from '../../core/catalog/index.ts'
import { isJsonObject, nonEmptyString, objectsIn, parseJson } from '../../core/json/index.ts'
import {
  aLogger,
  anObjectWith,
  checkOptions,
  type OptionRules,
  required,
  someMilliseconds,
} from '../../core/options/index.ts'
import { sendToLine } from '../attempt/line-send.ts'
import type { LineRegistry } from './line-registry.ts'
import type { LineState } from './line-state.ts'

/** Options of {@link LineModels}. */
export interface LineModelsOptions {
  /** The registry of `route`, which has the connections and credentials of each line. */
  lines: LineRegistry
  /** How long a list counts before it is asked for again, in milliseconds. Defaults to 600000: 10 minutes. */
  refreshMs?: number
  /** Logs lines whose list cannot be had, once each time that begins. Defaults to the console. */
  logger?: Logger
}

const RULES: OptionRules<LineModelsOptions> = {
  lines: required(anObjectWith('the LineRegistry that route has', 'stateOf')),
  refreshMs: someMilliseconds,
  logger: aLogger,
}

const REFRESH_MS = 600_000
const TIMEOUT_MS = 10_000
/** A failed list is asked for again after this time. */
const AGAIN_MS = 60_000
/** The longest wait of a caller for first lists. */
const FIRST_WAIT_MS = 1000
const MAX_NAMES = 10_000
const MAX_NAME_LENGTH = 200
/** Anthropic's lists have pages; this is its longest. */
const PAGE_SIZE = 1000
const MAX_PAGES = 10

/** The list of a line, which stays the same when its config changes, but not its upstream. */
interface LineList {
  /** The line's own names. */
  ids: readonly string[]
  /** When it is to be asked for again, on the monotonic clock. */
  dueAt: number
  /** The request that runs; undefined = there is none. */
  running: Promise<void> | undefined
  /** Whether a request has ended. */
  isKnown: boolean
  /** Whether the last request failed. */
  isFailing: boolean
}

/**
 * Keeps the models of lines that map them by patterns, from each line's own `/models`. A list that is needed and older than
 * `refreshMs` is requested again in the background; until the new one is there, and while the line fails, the old one counts. At
 * most 10,000 names of each line are kept.
 *
 * @throws TypeError at construction when an option is unusable.
 * @example
 * const lines = new LineRegistry()
 * const models = new LineModels({ lines })
 * app.use('/v1', modelRoutes({ catalog, names: (catalog) => models.names(catalog) }))
 */
export class LineModels {
  readonly #lines: LineModelsOptions['lines']
  readonly #refreshMs: number
  readonly #logger: Logger
  readonly #lists = new WeakMap<LineState, LineList>()
  /** The callers' names of the models in a list, for the lines of the current catalogue and former ones. */
  readonly #names = new WeakMap<
    Line,
    { readonly ids: readonly string[]; readonly names: readonly string[] }
  >()
  readonly #closing = new AbortController()

  constructor(options: LineModelsOptions) {
    checkOptions('LineModels', options, RULES)
    this.#lines = options.lines
    this.#refreshMs = options.refreshMs ?? REFRESH_MS
    this.#logger = quietLogger(options.logger)
  }

  /**
   * Returns the names that patterns of a catalogue match and that some line has, in alphabetical order. It waits a second at
   * most for first lists. Never rejects.
   */
  async names(catalog: Catalog): Promise<readonly string[]> {
    const lines = catalog.lines.filter((line) => line.enabled && mapsPatterns(line))
    const lists = lines.map((line) => this.#listOf(line))
    const first = lists.flatMap(({ isKnown, running }) => (isKnown || !running ? [] : [running]))
    if (first.length > 0) {
      const late = Promise.withResolvers<void>()
      const timer = setTimeout(late.resolve, FIRST_WAIT_MS)
      await Promise.race([Promise.all(first), late.promise])
      clearTimeout(timer)
    }
    const names = new Set(lines.flatMap((line) => this.#namesOn(line)))
    return [...names].filter((name) => catalog.modelOf(name)?.pattern !== undefined).sort()
  }

  close(): void {
    this.#closing.abort()
  }

  #listOf(line: Line): LineList {
    const state = this.#lines.stateOf(line)
    let list = this.#lists.get(state)
    if (!list) {
      list = { ids: [], dueAt: -Infinity, running: undefined, isKnown: false, isFailing: false }
      this.#lists.set(state, list)
    }
    if (!list.running && list.dueAt <= performance.now() && !this.#closing.signal.aborted)
      list.running = this.#refresh(line, list)
    return list
  }

  #namesOn(line: Line): readonly string[] {
    const { ids } = this.#listOf(line)
    const known = this.#names.get(line)
    if (known?.ids === ids) return known.names
    const names = ids.flatMap((id) => callersNames(line, id))
    this.#names.set(line, { ids, names })
    return names
  }

  async #refresh(line: Line, list: LineList): Promise<void> {
    const signal = AbortSignal.any([this.#closing.signal, AbortSignal.timeout(TIMEOUT_MS)])
    let failure: string | undefined
    try {
      list.ids = await this.#ask(line, signal)
    } catch (error) {
      failure = error instanceof Error ? error.message : String(error)
    }
    if (this.#closing.signal.aborted) return
    list.dueAt =
      performance.now() + (failure === undefined ? this.#refreshMs : Math.min(AGAIN_MS, this.#refreshMs))
    list.running = undefined
    list.isKnown = true
    if (failure !== undefined && !list.isFailing)
      this.#logger.warn({ line: line.id, reason: failure }, 'the models of a line could not be listed')
    list.isFailing = failure !== undefined
  }

  async #ask(line: Line, signal: AbortSignal): Promise<readonly string[]> {
    const target = { line, state: this.#lines.stateOf(line), upstreamModel: null }
    const ids = new Set<string>()
    let after: string | undefined
    for (let page = 0; page < MAX_PAGES; page++) {
      const cursor = after === undefined ? '' : `&after_id=${encodeURIComponent(after)}`
      const query = line.protocol === 'anthropic' ? `?limit=${PAGE_SIZE}${cursor}` : ''
      const { result } = await sendToLine(target, { method: 'GET', path: `/models${query}` }, signal)
      if (result.kind !== 'answered')
        throw new Error(result.failure.detail ?? `its /models failed: ${result.failure.code}`)
      const answer = parseJson(result.body.toString(), result.body)
      if (!isJsonObject(answer) || !Array.isArray(answer.data))
        throw new Error('its /models did not answer with a list')
      for (const { id } of objectsIn(answer.data)) {
        if (ids.size >= MAX_NAMES) return [...ids]
        if (typeof id === 'string' && id.length <= MAX_NAME_LENGTH) ids.add(id)
      }
      after = nonEmptyString(answer.last_id)
      if (line.protocol !== 'anthropic' || answer.has_more !== true || after === undefined) break
    }
    return [...ids]
  }
}
