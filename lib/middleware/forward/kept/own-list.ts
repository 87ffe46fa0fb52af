import type { IncomingHttpHeaders } from 'node:http'
import type { Call } from '../../../core/call/index.ts'
import { GatewayError } from '../../../core/errors/index.ts'
import type { JsonObject } from '../../../core/json/index.ts'
import type { KeptThing, KeptThings } from '../../../core/kept/index.ts'
import type { CandidateList } from '../../../routing/candidates/candidate.ts'
import type { RoutingSettings } from '../../../routing/candidates/routing-options.ts'
import { tryCandidates } from '../../../routing/try-candidates.ts'
import { yieldedBy, yieldsThings } from './kept-answer.ts'
import type { KeptResource } from './kept-resource.ts'
import { collectPage, type ListSource, pageBody } from './list-page.ts'
import { type ListQuery, readListQuery } from './list-query.ts'
import { LookUps } from './look-ups.ts'

/** How many records are read at a time where lines no longer have those that were read before. */
const RECORDS_AT_A_TIME = 100

/** Where a list can be read. */
export interface ListedLines {
  readonly lines: CandidateList
  readonly settings: RoutingSettings
  /** Aborted when the list is not wanted any more. */
  readonly signal: AbortSignal
  readonly inbound: IncomingHttpHeaders
}

/**
 * The list of what an account has in a collection, over all lines of a rule. Which things these are is known from their
 * records, so that the upstream's list, which has the things of all accounts, is never read. The lines are asked for each thing.
 */
export class OwnList implements ListSource {
  readonly #call: Call
  readonly #kept: KeptThings
  readonly #resource: KeptResource
  readonly #at: ListedLines
  readonly #query: ListQuery
  readonly #lineIds: readonly string[]
  /** The line that was asked last; undefined if none was. */
  askedLine: string | undefined

  /** @throws {GatewayError} `invalid_request` for a query that cannot be read. */
  constructor(call: Call, kept: KeptThings, resource: KeptResource, query: URLSearchParams, at: ListedLines) {
    this.#call = call
    this.#kept = kept
    this.#resource = resource
    this.#at = at
    this.#query = readListQuery(query)
    const { pin } = call
    this.#lineIds = at.lines.candidates.map(({ line }) => line.id).filter((id) => !pin || id === pin.line)
  }

  /**
   * Returns the body of the answer.
   *
   * @throws {GatewayError} `invalid_request` if the cursor is no thing that the account has, or had lately; the verdict if a
   * line cannot be asked: a list that lacks things would be taken for the whole.
   */
  async body(): Promise<JsonObject> {
    const { cursor, backwards } = this.#query
    const { kind } = this.#resource
    const start = cursor && (await this.#kept.place(this.#call, { kind, id: cursor.id }))
    if (cursor && !start) throw noPlace(cursor.param)
    const page = await collectPage(this, this.#query, start)
    return pageBody(kind, backwards ? { ...page, items: page.items.toReversed() } : page)
  }

  async records(after: KeptThing | undefined, limit: number): Promise<readonly KeptThing[]> {
    const { order, backwards } = this.#query
    const flipped = order === 'newest' ? 'oldest' : 'newest'
    const lines = { lines: this.#lineIds, order: backwards ? flipped : order } as const
    const found: KeptThing[] = []
    for (let size = limit, last = after; ; size = RECORDS_AT_A_TIME) {
      const page = { ...lines, after: last, limit: size }
      const read = await this.#kept.list(this.#call, this.#resource.kind, page)
      found.push(...read.filter((thing) => !this.#kept.isGone(thing)))
      if (found.length >= limit || read.length < size) return found.slice(0, limit)
      last = read.at(-1)
    }
  }

  async look(things: readonly KeptThing[]): Promise<readonly (JsonObject | undefined)[]> {
    const found = new Map<KeptThing, JsonObject | undefined>()
    for (const [line, own] of Map.groupBy(things, (thing) => thing.line)) {
      const answers = await this.#ask(line, own)
      own.forEach((thing, i) => {
        found.set(thing, answers[i])
        if (!answers[i]) this.#kept.noteGone(thing)
      })
    }
    return things.map((thing) => found.get(thing))
  }

  async #ask(line: string, things: readonly KeptThing[]): Promise<readonly (JsonObject | undefined)[]> {
    const { lines, settings, signal, inbound } = this.#at
    const { collection, kind } = this.#resource
    const pathOf = ({ id }: KeptThing): string =>
      `/${collection}/${encodeURIComponent(id)}${this.#query.passedOn}`
    const requests = things.map((thing) => ({ method: 'GET', path: pathOf(thing), inbound }) as const)
    const lookUps = new LookUps(requests, signal)
    const candidates = lines.candidates.filter((candidate) => candidate.line.id === line)
    this.askedLine = line
    await tryCandidates(this.#call, { ...lines, candidates }, settings, lookUps)
    signal.throwIfAborted()
    if (yieldsThings(kind)) {
      const made = lookUps.found.flatMap((thing) => yieldedBy(thing, kind))
      await this.#kept.remember(this.#call, line, made)
    }
    return lookUps.found
  }
}

function noPlace(param: string): GatewayError {
  return new GatewayError('invalid_request', {
    param,
    message: `The query parameter "${param}" names nothing of this list, or what was deleted long ago. List from the beginning.`,
  })
}
