import { type JsonObject, objectsIn } from '../../json/index.ts'

/** Whether the caller asks for the addresses of the pages that were found. */
export function includesSources({ include }: JsonObject): boolean {
  return Array.isArray(include) && include.includes('web_search_call.action.sources')
}

/**
 * Returns the item of a web search.
 *
 * @param search an entry of `web_searches`.
 */
export function webSearchItem(
  { query, urls, failed }: JsonObject,
  id: string,
  withSources: boolean,
): JsonObject {
  const found = Array.isArray(urls) ? urls : []
  const action = {
    type: 'search',
    query,
    queries: [query],
    ...(withSources && { sources: found.map((url) => ({ type: 'url', url })) }),
  }
  return { id, type: 'web_search_call', status: failed === true ? 'failed' : 'completed', action }
}

export function webSearchItems(message: JsonObject, responseId: string, request: JsonObject): JsonObject[] {
  const withSources = includesSources(request)
  return objectsIn(message.web_searches).map((search, i) =>
    webSearchItem(search, `ws_${responseId}_${i}`, withSources),
  )
}
