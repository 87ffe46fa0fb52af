import { GatewayError } from '../../../core/errors/index.ts'

/** Where upstreams keep what: the kind of the resources that are below a path. */
const COLLECTIONS: Readonly<Record<string, string>> = {
  agents: 'agent',
  assistants: 'assistant',
  'audio/voice_consents': 'voice_consent',
  'audio/voices': 'voice',
  batches: 'batch',
  cachedContents: 'cached_content',
  'chat/completions': 'chat_completion',
  'chatkit/threads': 'chatkit_thread',
  containers: 'container',
  conversations: 'conversation',
  deployment_runs: 'deployment_run',
  deployments: 'deployment',
  dreams: 'dream',
  environments: 'environment',
  evals: 'eval',
  files: 'file',
  'fine_tuning/jobs': 'fine_tuning_job',
  memory_stores: 'memory_store',
  'messages/batches': 'message_batch',
  'realtime/calls': 'call',
  sessions: 'session',
  skills: 'skill',
  threads: 'thread',
  tunnels: 'tunnel',
  uploads: 'upload',
  user_profiles: 'user_profile',
  vaults: 'vault',
  vector_stores: 'vector_store',
  webhook_endpoints: 'webhook_endpoint',
}

const BY_PATH: ReadonlyMap<string, DeclaredCollection> = new Map(
  Object.entries(COLLECTIONS).map(([path, kind]) => [path.toLowerCase(), { path, kind }]),
)

/** Where many servers list what they have themselves; OpenAI has no such list. */
const OPEN_LISTS: ReadonlySet<string> = new Set(['audio/voices'])

/** Segments behind a collection that are no id, because a request to them makes something of it. */
const MAKING: ReadonlySet<string> = new Set(['thread runs'])

/** The resource that a request's path names. */
export interface PathResource {
  readonly kind: string
  /** The path of the collection as upstreams write it, such as `files`. */
  readonly collection: string
  /** Undefined if the path is that of the collection. */
  readonly id: string | undefined
  /** Whether the path ends with the id, or with the collection. */
  readonly whole: boolean
  /** Whether its list is the line's own, which all accounts may see. A rule with `keeps` makes it that of the account. */
  readonly isOpen: boolean
}

/** A collection of a rule of its own. */
export interface DeclaredCollection {
  readonly path: string
  readonly kind: string
}

/**
 * Returns what a path names; undefined if it is below no collection.
 *
 * @param path the path behind `/v1`, with its query, as the upstream gets it.
 * @throws {GatewayError} `not_found` for a path with empty segments, which upstreams may drop.
 */
export function resourceOfPath(path: string, declared?: DeclaredCollection): PathResource | undefined {
  const segments = path.replace(/\?.*/s, '').replace(/\/$/, '').split('/').slice(1).map(decodeURIComponent)
  if (segments.includes('')) throw new GatewayError('not_found')
  for (const length of [1, 2, 3]) {
    const begin = segments.slice(0, length).map(withoutParameters).join('/').toLowerCase()
    const known = begin === declared?.path.toLowerCase() ? declared : BY_PATH.get(begin)
    if (known === undefined) continue
    const { kind, path: collection } = known
    const isOpen = known !== declared && OPEN_LISTS.has(collection)
    const [id, ...rest] = segments.slice(length)
    if (id !== undefined && MAKING.has(`${kind} ${id.toLowerCase()}`))
      return { kind, collection, id: undefined, whole: true, isOpen }
    return { kind, collection, id, whole: rest.length === 0, isOpen }
  }
  return undefined
}

function withoutParameters(segment: string): string {
  return segment.replace(/;.*/s, '').trim()
}
