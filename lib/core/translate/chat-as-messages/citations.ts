import { objectsIn, textIn } from '../parts/json-object.ts'
import type { JsonObject } from '../translation.ts'

/** What a text block cites, as a chat's annotations of the text from `start` to `end`. Only pages on the web map. */
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

/** Address and title of what is cited, where it is a page on the web. */
function annotationSource({ type, url, source, title }: JsonObject): JsonObject | undefined {
  const page =
    type === 'web_search_result_location' ? url : type === 'search_result_location' ? source : undefined
  if (typeof page !== 'string' || !/^https?:\/\//i.test(page)) return undefined
  return { url: page, title: textIn(title) ?? page }
}
