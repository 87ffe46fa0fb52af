/** The gateway's own paths. A rule that could match one of them would be a second meaning of it. */
const OWN_PATHS = [
  '/v1/chat/completions',
  '/v1/completions',
  '/v1/responses',
  '/v1/responses/:id',
  '/v1/embeddings',
  '/v1/images/generations',
  '/v1/rerank',
  '/v1/messages',
  '/v1/messages/count_tokens',
  '/v1/videos',
  '/v1/videos/*rest',
  '/v1/models',
  '/v1/models/*rest',
  '/v1/calls',
  '/v1/calls/*rest',
  '/v1/tickets',
  '/v1/tickets/*rest',
  '/api/v3/contents/generations/tasks',
  '/api/v3/contents/generations/tasks/*rest',
].map(segmentsOf)

/** Callers are authenticated under these, and nowhere else. */
const PREFIX = /^\/(?:v1|api\/v3)\//

/** Literal segments and `:names`; at the end there may be a `*name` for one segment or more. */
const FORM = /^(?:\/(?:[\w.~-]+|:[a-z_]\w*))+(?:\/\*[a-z_]\w*)?$/i

/** What is wrong with the path of a pass-through rule; undefined where nothing is. */
export function pathFault(path: string): string | undefined {
  if (!PREFIX.test(path)) return 'must begin with /v1/ or /api/v3/'
  if (!FORM.test(path)) return 'must be a path such as /v1/files, /v1/files/:id or /v1/audio/*rest'
  const segments = segmentsOf(path)
  const own = OWN_PATHS.find((other) => overlap(segments, other))
  return own && `takes requests for /${own.join('/')}, which the gateway answers itself`
}

function segmentsOf(path: string): string[] {
  return path.split('/').slice(1)
}

/** Whether a request could match both. */
function overlap(some: readonly string[], others: readonly string[]): boolean {
  const longest = Math.max(some.length, others.length)
  for (let i = 0; i < longest; i++) {
    const one = some[i]
    const other = others[i]
    // A wildcard takes at least one segment.
    if (one === undefined || other === undefined) return false
    if (one.startsWith('*') || other.startsWith('*')) return true
    const any = one.startsWith(':') || other.startsWith(':')
    if (!any && one.toLowerCase() !== other.toLowerCase()) return false
  }
  return true
}
