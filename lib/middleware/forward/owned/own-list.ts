import type { IncomingHttpHeaders } from 'node:http'
import type { LineRequest, OpenCall } from '../../../core/call/index.ts'
import { GatewayError } from '../../../core/errors/index.ts'
import { isJsonObject, type JsonObject, parseJson } from '../../../core/json/index.ts'
import {
  plainId,
  type UpstreamResource,
  type UpstreamResources,
} from '../../../core/upstream-resources/index.ts'
import { type AttemptEnd, type Failure, failedEnd, malformed } from '../../../routing/attempt/failure.ts'
import { sendToLine } from '../../../routing/attempt/line-send.ts'
import type { Candidate, CandidateList } from '../../../routing/candidates/candidate.ts'
import type { RoutingSettings } from '../../../routing/candidates/routing-options.ts'
import { type AttemptResult, tryCandidates } from '../../../routing/try-candidates.ts'
import { type ListQuery, matches, readListQuery } from './list-query.ts'
import { filesNamedBy, idOf, namesFiles } from './made-resources.ts'
import type { PathResource } from './resource-path.ts'
import { namesResults, withOwnResults } from './results-address.ts'

/** A look-up is not the call's own request. */
const UNREAD = { request: null }

/** How many records are read at a time where lines no longer have those that were read before. */
const RECORDS_AT_A_TIME = 100

/** Where a list can be read. */
export interface LinesOfList {
  readonly lines: CandidateList
  readonly settings: RoutingSettings
  /** Aborted when the list is not wanted any more. */
  readonly signal: AbortSignal
  readonly inbound: IncomingHttpHeaders
}

/**
 * The list of what an account has in a collection, over all lines of a rule. Which resources these are is known from their
 * records, so that the upstream's list, which has the resources of all accounts, is never read. The lines are asked for each resource.
 */
export class OwnList {
  readonly #call: OpenCall
  readonly #store: UpstreamResources
  readonly #resource: PathResource
  readonly #at: LinesOfList
  readonly #address: string
  readonly #query: ListQuery
  readonly #lineIds: readonly string[]
  /** Whether the request that the call itself was counted for has gone to a line. */
  #usedOwnRequest = false
  /** The line that was asked last; undefined if none was. */
  askedLine: string | undefined

  /** @throws {GatewayError} `invalid_request` for a query that cannot be read. */
  constructor(
    call: OpenCall,
    { resources, address }: { readonly resources: UpstreamResources; readonly address: string },
    resource: PathResource,
    query: URLSearchParams,
    at: LinesOfList,
  ) {
    this.#call = call
    this.#store = resources
    this.#address = address
    this.#resource = resource
    this.#at = at
    this.#query = readListQuery(query)
    const { pin } = call
    this.#lineIds = at.lines.candidates.map(({ line }) => line.id).filter((id) => !pin || id === pin.line)
  }

  /**
   * Returns the body of the answer.
   *
   * @throws {GatewayError} `invalid_request` if the cursor is no resource that the account has, or had lately; the verdict if a
   * line cannot be asked: a list that lacks resources would be taken for the whole.
   */
  async body(): Promise<JsonObject> {
    const { cursor, backwards } = this.#query
    const { kind } = this.#resource
    const start = cursor && (await this.#store.place(this.#call, { kind, id: cursor.id }))
    if (cursor && !start) throw noPlace(cursor.param)
    const page = await collectPage(this, this.#query, start)
    const items = backwards ? page.items.toReversed() : page.items
    const own = namesResults(kind) ? items.map((item) => withOwnResults(item, this.#address)) : items
    return pageBody(kind, { ...page, items: own })
  }

  /** Returns the records behind a place, in the order of the list. */
  async records(after: UpstreamResource | undefined, limit: number): Promise<readonly UpstreamResource[]> {
    const { order, backwards } = this.#query
    const flipped = order === 'newest' ? 'oldest' : 'newest'
    const lines = { lines: this.#lineIds, order: backwards ? flipped : order } as const
    const found: UpstreamResource[] = []
    for (let size = limit, last = after; ; size = RECORDS_AT_A_TIME) {
      const page = { ...lines, after: last, limit: size }
      const read = await this.#store.list(this.#call, this.#resource.kind, page)
      found.push(...read.filter((resource) => !this.#store.isGone(resource)))
      if (found.length >= limit || read.length < size) return found.slice(0, limit)
      last = read.at(-1)
    }
  }

  /** Asks the lines for resources, as far as the caller's limits allow. */
  async lookUp(resources: readonly UpstreamResource[]): Promise<LookUpResult> {
    const { counted, refusal } = await this.#count(resources)
    return { resources: await this.#fetch(counted), refusal }
  }

  /** Counts a request for each of the resources, up to the first one for which a limit of the caller is used up. */
  async #count(resources: readonly UpstreamResource[]) {
    for (const [i] of resources.entries()) {
      const refusal = this.#usedOwnRequest ? await this.#call.limits?.consumeRequests(1) : undefined
      if (refusal) return { counted: resources.slice(0, i), refusal }
      this.#usedOwnRequest = true
    }
    return { counted: resources, refusal: undefined }
  }

  async #fetch(resources: readonly UpstreamResource[]): Promise<readonly (JsonObject | undefined)[]> {
    const found = new Map<UpstreamResource, JsonObject | undefined>()
    for (const [line, own] of Map.groupBy(resources, (resource) => resource.line)) {
      const answers = await this.#ask(line, own)
      own.forEach((resource, i) => {
        found.set(resource, answers[i])
        if (!answers[i]) this.#store.noteGone(resource)
      })
    }
    return resources.map((resource) => found.get(resource))
  }

  async #ask(
    line: string,
    resources: readonly UpstreamResource[],
  ): Promise<readonly (JsonObject | undefined)[]> {
    const { lines, settings, signal, inbound } = this.#at
    const { collection, kind } = this.#resource
    const pathOf = ({ id }: UpstreamResource): string =>
      `/${collection}/${encodeURIComponent(id)}${this.#query.passedOn}`
    const requests = resources.map(
      (resource) => ({ method: 'GET', path: pathOf(resource), inbound }) as const,
    )
    const candidates = lines.candidates.filter((candidate) => candidate.line.id === line)
    this.askedLine = line
    const list = { ...lines, candidates }
    const decided = await tryCandidates(this.#call, list, settings, UNREAD, (candidate) =>
      lookUp(candidate, requests, signal),
    )
    signal.throwIfAborted()
    const found = decided?.result.found ?? []
    if (namesFiles(kind)) {
      const made = found.flatMap((resource) => filesNamedBy(resource, kind))
      await this.#store.remember(this.#call, line, made)
    }
    return found
  }
}

function noPlace(param: string): GatewayError {
  return new GatewayError('invalid_request', {
    param,
    message: `The query parameter "${param}" does not name an object of this list. List from the beginning.`,
  })
}

/** The answers of lines about some resources. */
interface LookUpResult {
  /** The resources as their lines have them, in their order; undefined for one that its line has no more. */
  readonly resources: readonly (JsonObject | undefined)[]
  /** Makes the refusal if the resources are not all, because a limit of the caller is used up. */
  readonly refusal: (() => GatewayError) | undefined
}

interface ListPage {
  readonly items: readonly JsonObject[]
  readonly hasMore: boolean
}

/** How many resources lines are asked for at the same time. */
const AT_A_TIME = 8
/** The most resources that lines have and are asked for in one request. */
const MAX_LOOKS = 200
/** The most resources that lines are asked for in one request and no longer have. The next request goes on behind them. */
const MAX_GONE = 1000
/** About the most bytes of a page. The first resource is in the page however large it is. */
const MAX_PAGE_BYTES = 1024 * 1024

/**
 * Collects a page. It is shorter than asked for only where the list ends, a limit of the caller is used up, or the resources are
 * large or rarely match. It is empty only if nothing is left.
 *
 * @throws {GatewayError} if nothing is found among the most resources that may be asked for, or that the caller's limits allow.
 */
export async function collectPage(
  source: Pick<OwnList, 'records' | 'lookUp'>,
  { limit, filters }: ListQuery,
  start: UpstreamResource | undefined,
): Promise<ListPage> {
  const items: JsonObject[] = []
  let bytes = 0
  let after = start
  let looks = 0
  let gone = 0
  for (;;) {
    const records = await source.records(after, AT_A_TIME + 1)
    const batch = records.slice(0, Math.min(AT_A_TIME, limit - items.length))
    const { resources, refusal } = await source.lookUp(batch)
    for (const item of resources) {
      if (item) looks++
      else gone++
      if (!item || !matches(item, filters)) continue
      bytes += Buffer.byteLength(JSON.stringify(item))
      if (bytes > MAX_PAGE_BYTES && items.length > 0) return { items, hasMore: true }
      items.push(item)
    }
    if (refusal) {
      if (items.length === 0) throw refusal()
      return { items, hasMore: true }
    }
    const hasMore = records.length > batch.length
    if (!hasMore || items.length === limit) return { items, hasMore }
    if (looks >= MAX_LOOKS || gone >= MAX_GONE) {
      if (items.length === 0) throw looks >= MAX_LOOKS ? noMatch(filters) : allGone()
      return { items, hasMore }
    }
    after = batch.at(-1)
  }
}

/** Returns the answer in the form of the protocols that have such a list. */
export function pageBody(kind: string, { items, hasMore }: ListPage): JsonObject {
  const last = items.at(-1)
  const next = hasMore && last ? plainId(idOf(last) ?? '') : null
  if (kind === 'cached_content')
    return { cachedContents: items, ...(next !== null && { nextPageToken: next }) }
  return {
    object: 'list',
    data: items,
    first_id: items[0]?.id ?? null,
    last_id: last?.id ?? null,
    has_more: hasMore,
    next_page: next,
  }
}

function noMatch([filter]: ListQuery['filters']): GatewayError {
  const [param = ''] = filter ?? []
  const message = `None of ${MAX_LOOKS} resources matches "${param}". List them without it, and choose yourself.`
  return new GatewayError('invalid_request', { param, message })
}

function allGone(): GatewayError {
  return new GatewayError('upstream_error', {
    message: `The upstream no longer has ${MAX_GONE} resources of this list in a row. Retry to go on behind them.`,
  })
}

/** The statuses of a resource that the line no longer has, or never had below this path. */
const GONE: ReadonlySet<number> = new Set([404, 405, 410])

/** How look-ups ended, and the answers of the line. */
export type LookUpEnd = AttemptEnd & {
  /** In the order of the requests; undefined for a resource that the line does not have. */
  readonly found: readonly (JsonObject | undefined)[]
}

/** Asks one line for several resources at once. The first failure is that of all. */
export async function lookUp(
  candidate: Candidate,
  requests: readonly LineRequest[],
  signal: AbortSignal,
): Promise<AttemptResult<LookUpEnd>> {
  const asked = await Promise.all(requests.map((request) => ask(candidate, request, signal)))
  const failed = asked.find(({ failure }) => failure) ?? asked[0]
  const failure = failed?.failure
  const record = failed?.reply.record(failure?.code ?? 'completed')
  const found = asked.map(({ resource }) => resource)
  if (!failure) return { kind: 'served', record, found }
  if (signal.aborted) return { kind: 'abandoned', failure, record, found }
  return { ...failedEnd(failure), record, found }
}

async function ask(candidate: Candidate, request: LineRequest, signal: AbortSignal) {
  const reply = await sendToLine(candidate, request, signal)
  const { result } = reply
  if (result.kind === 'refused' && GONE.has(result.status)) return { reply }
  if (result.kind !== 'answered') return { reply, failure: reply.failure ?? malformed('no answer') }
  const resource = parseJson(result.body.toString())
  if (isJsonObject(resource)) return { reply, resource }
  return { reply, failure: malformed('the answer is no JSON object') as Failure }
}
