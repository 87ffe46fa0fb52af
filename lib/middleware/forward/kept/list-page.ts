import { GatewayError } from '../../../core/errors/index.ts'
import type { JsonObject } from '../../../core/json/index.ts'
import { type KeptThing, plainId } from '../../../core/kept/index.ts'
import { idOf } from './kept-answer.ts'
import { type ListQuery, matches } from './list-query.ts'

/** Where the things of a list come from. */
export interface ListSource {
  /** Returns the records behind a place, in the order of the list. */
  records(after: KeptThing | undefined, limit: number): Promise<readonly KeptThing[]>
  /** Returns the things as their lines have them, in the same order; undefined for one that its line has no more. */
  look(things: readonly KeptThing[]): Promise<readonly (JsonObject | undefined)[]>
}

export interface ThingPage {
  readonly items: readonly JsonObject[]
  readonly hasMore: boolean
}

/** How many things lines are asked for at the same time. */
const AT_A_TIME = 8
/** The most things that lines have and are asked for in one request. */
const MAX_LOOKS = 200
/** The most things that lines are asked for in one request and no longer have. The next request goes on behind them. */
const MAX_GONE = 1000
/** About the most bytes of a page. The first thing is in the page however large it is. */
const MAX_PAGE_BYTES = 1024 * 1024

/**
 * Collects a page. It is shorter than asked for only where the list ends, or the things are large or rarely match. It is empty
 * only if nothing is left.
 *
 * @throws {GatewayError} if nothing is found among the most things that may be asked for.
 */
export async function collectPage(
  source: ListSource,
  { limit, filters }: ListQuery,
  start: KeptThing | undefined,
): Promise<ThingPage> {
  const items: JsonObject[] = []
  let bytes = 0
  let after = start
  let looks = 0
  let gone = 0
  for (;;) {
    const records = await source.records(after, AT_A_TIME + 1)
    const batch = records.slice(0, Math.min(AT_A_TIME, limit - items.length))
    for (const item of await source.look(batch)) {
      if (item) looks++
      else gone++
      if (!item || !matches(item, filters)) continue
      bytes += Buffer.byteLength(JSON.stringify(item))
      if (bytes > MAX_PAGE_BYTES && items.length > 0) return { items, hasMore: true }
      items.push(item)
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
export function pageBody(kind: string, { items, hasMore }: ThingPage): JsonObject {
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
  const message = `None of ${MAX_LOOKS} things matches "${param}". List them without it, and choose yourself.`
  return new GatewayError('invalid_request', { param, message })
}

function allGone(): GatewayError {
  return new GatewayError('upstream_error', {
    message: `The upstream no longer has ${MAX_GONE} things of this list in a row. Retry to go on behind them.`,
  })
}
