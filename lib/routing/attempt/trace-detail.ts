import type { Line } from '../../core/catalog/index.ts'

/** Characters of a detail that the trace keeps. */
const MAX_LENGTH = 300
/** Shorter words of a header are not treated as secrets: they would match everywhere. */
const MIN_SECRET_LENGTH = 8

/** A common substring of the detail and the request is a quotation if it is at least this long. */
const MIN_QUOTATION_LENGTH = 12
/** Bytes searched for quotations at either end of a request: searching all of 20 MB would take too long. */
const SEARCHED_BYTES = 64 * 1024

/**
 * Removes secrets and quotations from the detail of a failure. Upstreams may quote the key that they reject, and
 * callers can read the trace in the call log. Upstreams may also quote the request, whose text is never kept.
 *
 * @param sent the body of the request; null if it has none.
 */
export function traceDetail(detail: string, line: Line, sent: Buffer | null): string {
  let text = detail
  for (const secret of secretsOf(line)) text = text.replaceAll(secret, '***')
  const kept = text.slice(0, MAX_LENGTH)
  return sent ? withoutQuotations(kept, sent) : kept
}

function withoutQuotations(detail: string, sent: Buffer): string {
  const ends =
    sent.length > 2 * SEARCHED_BYTES
      ? [sent.subarray(0, SEARCHED_BYTES), sent.subarray(-SEARCHED_BYTES)]
      : [sent]
  const isSent = (words: string): boolean => ends.some((end) => end.includes(words))
  let text = detail
  for (let at = 0; at + MIN_QUOTATION_LENGTH <= text.length; at++) {
    let end = at + MIN_QUOTATION_LENGTH
    if (!isSent(text.slice(at, end))) continue
    while (end < text.length && isSent(text.slice(at, end + 1))) end++
    text = `${text.slice(0, at)}***${text.slice(end)}`
    at += 2
  }
  return text
}

/** Splits header values at white space: a secret may follow a scheme, as in `Bearer …`. */
function secretsOf({ apiKey = '', headers }: Line): string[] {
  const words = [apiKey, ...Object.values(headers).flatMap((value) => value.split(/\s+/))]
  return words.filter((word) => word.length >= MIN_SECRET_LENGTH)
}
