/** The gateway's own paths. A pass-through rule must not match any of them. */
const OWN_PATHS = [
  '/v1/chat/completions',
  '/v1/completions',
  '/v1/responses',
  '/v1/responses/:id',
  '/v1/responses/:id/:part',
  '/v1/embeddings',
  '/v1/images/generations',
  '/v1/images/edits',
  '/v1/rerank',
  '/v1/messages',
  '/v1/messages/count_tokens',
  '/v1/videos',
  '/v1/videos/*rest',
  '/v1/models',
  '/v1/models/*rest',
  '/v1/calls',
  '/v1/calls/*rest',
  '/v1/usage',
  '/v1/account',
  '/v1/tickets',
  '/v1/tickets/*rest',
  '/api/v3/contents/generations/tasks',
  '/api/v3/contents/generations/tasks/*rest',
].map(segmentsOf)

/** The prefixes under which callers are authenticated. */
const PREFIX = /^\/(?:v1|api\/v3)\//

/** Matches paths of literal segments and `:names`, with an optional `*name` for one or more segments at the end. */
const PATH_PATTERN = /^(?:\/(?:[\w.~-]+|:[a-z_]\w*))+(?:\/\*[a-z_]\w*)?$/i

/** Returns what is wrong with the path of a pass-through rule; undefined if it is valid. */
export function pathFault(path: string): string | undefined {
  if (!PREFIX.test(path)) return 'must begin with /v1/ or /api/v3/'
  if (!PATH_PATTERN.test(path)) return 'must be a path such as /v1/files, /v1/files/:id or /v1/audio/*rest'
  const segments = segmentsOf(path)
  const own = OWN_PATHS.find((other) => overlap(segments, other))
  return own && `takes requests for /${own.join('/')}, which the gateway answers itself`
}

/** The path of a collection: one to three words behind its prefix. Upstreams keep nothing further down. */
const COLLECTION = /^.*?\/(?:v1|api\/v3)\/([\w.~-]+(?:\/[\w.~-]+){0,2})(?:\/[:*].*)?$/i

/** Returns the collection that a path begins with: one to three words behind its prefix, as `voices` of `/v1/voices/:id`. */
export function collectionOf(path: string): string | undefined {
  return COLLECTION.exec(path)?.[1]
}

/** The words for the path that a rule with `keeps` must have. */
export const COLLECTION_PATH =
  'a path that begins with one to three words, such as /v1/voices or /v1/voices/:id'

function segmentsOf(path: string): string[] {
  return path.split('/').slice(1)
}

/** Whether a request could match both paths. */
function overlap(segments: readonly string[], otherSegments: readonly string[]): boolean {
  const length = Math.max(segments.length, otherSegments.length)
  for (let i = 0; i < length; i++) {
    const one = segments[i]
    const other = otherSegments[i]
    // A wildcard matches at least one segment.
    if (one === undefined || other === undefined) return false
    if (one.startsWith('*') || other.startsWith('*')) return true
    const any = one.startsWith(':') || other.startsWith(':')
    if (!any && one.toLowerCase() !== other.toLowerCase()) return false
  }
  return true
}
