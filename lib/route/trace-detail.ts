import type { Line } from '../catalog/index.ts'

const LONGEST = 300
/** Shorter words in a header are no secrets, and would be found everywhere. */
const SHORTEST_SECRET = 8

/**
 * What went wrong, as the trace keeps it. Upstreams like to quote the key they refuse, and the callers of the gateway,
 * who can read their calls in the log, must not learn it.
 */
export function traceDetail(detail: string, line: Line): string {
  let text = detail
  for (const secret of secretsOf(line)) text = text.replaceAll(secret, '***')
  return text.slice(0, LONGEST)
}

/** A header's value may hold its secret behind a scheme, `Bearer …`. */
function secretsOf({ apiKey = '', headers }: Line): string[] {
  const words = [apiKey, ...Object.values(headers).flatMap((value) => value.split(/\s+/))]
  return words.filter((word) => word.length >= SHORTEST_SECRET)
}
