import type { Line } from '../../core/catalog/index.ts'

const LONGEST = 300
/** Shorter words in a header are no secrets, and would be found everywhere. */
const SHORTEST_SECRET = 8

/** What stands in both and is at least this long is a quotation. */
const SHORTEST_QUOTATION = 12
/** Bytes of a request, at either end of it, in which quotations are looked for: in all of 20 MB it would take too long. */
const SEARCHED = 64 * 1024

/**
 * What went wrong, as the trace keeps it. Upstreams like to quote the key they refuse, and the callers of the gateway,
 * who can read their calls in the log, must not learn it. Some quote the request, whose text is never kept.
 *
 * @param sent the body of the request; null without one.
 */
export function traceDetail(detail: string, line: Line, sent: Buffer | null): string {
  let text = detail
  for (const secret of secretsOf(line)) text = text.replaceAll(secret, '***')
  const kept = text.slice(0, LONGEST)
  return sent ? withoutQuotations(kept, sent) : kept
}

function withoutQuotations(detail: string, sent: Buffer): string {
  const ends = sent.length > 2 * SEARCHED ? [sent.subarray(0, SEARCHED), sent.subarray(-SEARCHED)] : [sent]
  const isSent = (words: string): boolean => ends.some((end) => end.includes(words))
  let text = detail
  for (let at = 0; at + SHORTEST_QUOTATION <= text.length; at++) {
    let end = at + SHORTEST_QUOTATION
    if (!isSent(text.slice(at, end))) continue
    while (end < text.length && isSent(text.slice(at, end + 1))) end++
    text = `${text.slice(0, at)}***${text.slice(end)}`
    at += 2
  }
  return text
}

/** A header's value may hold its secret behind a scheme, `Bearer …`. */
function secretsOf({ apiKey = '', headers }: Line): string[] {
  const words = [apiKey, ...Object.values(headers).flatMap((value) => value.split(/\s+/))]
  return words.filter((word) => word.length >= SHORTEST_SECRET)
}
