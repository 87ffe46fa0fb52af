import { type JsonObject, nonEmptyString, objectsIn } from '../../json/index.ts'

/**
 * Translates the citations of a text block into annotations of the text from `start` to `end`. Only citations of web
 * pages have a counterpart.
 */
export function citationsOf(
  citations: unknown,
  start: number,
  end: number,
): { annotations: readonly JsonObject[]; skipped: number } {
  const all = objectsIn(citations)
  const annotations = all.flatMap((citation) => {
    const source = annotationSource(citation)
    if (!source) return []
    return [{ type: 'url_citation', url_citation: { start_index: start, end_index: end, ...source } }]
  })
  return { annotations, skipped: all.length - annotations.length }
}

/** Returns the address and the title of a cited web page; undefined for any other source. */
function annotationSource({ type, url, source, title }: JsonObject): JsonObject | undefined {
  const page =
    type === 'web_search_result_location' ? url : type === 'search_result_location' ? source : undefined
  if (typeof page !== 'string' || !/^https?:\/\//i.test(page)) return undefined
  return { url: page, title: nonEmptyString(title) ?? page }
}
