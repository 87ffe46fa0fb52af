import { createHash } from 'node:crypto'
import type { Request } from 'express'
import type { CallRequest, OpenCall } from '../../core/call/index.ts'
import { isJsonObject, type JsonObject, someObject } from '../../core/json/index.ts'
import {
  chatCompletions,
  completions,
  embeddings,
  messages,
  type Operation,
  rerank,
  responses,
} from '../../core/operations/index.ts'
import { contentOf, fingerprintOf } from '../../core/repetition/index.ts'

/** The operations whose answers depend on the request alone, and hold no address that expires. */
const OPERATIONS: ReadonlySet<Operation> = new Set([
  chatCompletions,
  completions,
  responses,
  messages,
  embeddings,
  rerank,
])

/** Methods that are answered from the cache. */
const METHODS: ReadonlySet<string> = new Set(['GET', 'POST'])

/** The uses of the cache that `Cache-Control` of a request can forbid. */
export interface CacheControl {
  readonly noStore: boolean
  readonly noCache: boolean
}

/** Reads the `Cache-Control` of a request. */
export function cacheControlOf({ headers }: Request): CacheControl {
  const directives = directivesIn(String(headers['cache-control'] ?? ''))
  return { noStore: directives.includes('no-store'), noCache: directives.includes('no-cache') }
}

/** Returns the names of a list such as that of `Cache-Control` or `Vary`, in small letters and without their values. */
export function directivesIn(list: string): string[] {
  return list
    .toLowerCase()
    .split(',')
    .map((each) => each.replace(/=.*/, '').trim())
}

/** Whether a repetition of a request can have the same answer: it changes nothing, and names nothing that can change. */
export function isRepeatable({ headers, method }: Request, { request, pin }: OpenCall): boolean {
  // The record of its Idempotency-Key decides the answer to a repetition.
  if (headers['idempotency-key'] !== undefined) return false
  if (!METHODS.has(method) || headers.upgrade !== undefined) return false
  return request === null || (pin === null && isRepeatableCall(request))
}

function isRepeatableCall({ operation, body: { json }, references, resource }: CallRequest): boolean {
  if (!OPERATIONS.has(operation) || references.length > 0 || resource) return false
  if (operation.keeps?.(json) || json.store === true || json.background === true) return false
  // The audio of an answer is kept by the upstream, and named in later requests.
  if (isJsonObject(json.audio)) return false
  return !runsTools(json)
}

/** Whether the provider runs tools for the request: they search, or change something. OpenRouter names some as `plugins`. */
function runsTools({
  tools,
  plugins,
  mcp_servers: servers,
  web_search_options: search,
}: JsonObject): boolean {
  if (plugins !== undefined || servers !== undefined || search !== undefined) return true
  return someObject(tools, ({ type }) => type !== undefined && type !== 'function' && type !== 'custom')
}

/**
 * Returns the name that a request and its repetitions share: a hash of whose it is, and one of all that decides the answer.
 *
 * @param by whose it is.
 * @returns undefined if the body was not read because of its type, or has files on the disk.
 * @throws TypeError if no parser is mounted.
 */
export function cacheKeyOf(req: Request, call: OpenCall, by: string): string | undefined {
  const content = contentOf(req, call)
  if (content === 'no parser')
    throw new TypeError('cache: the body was not read; mount readRequest or express.json() before cache')
  // Answers to uploads on the disk are not worth reading the files.
  if (content === 'not parsed' || content.files.length > 0) return undefined
  const { request, method } = call
  const decides = request ? decidingMembers(req, call, request) : decidingHeaders(req)
  const path = request?.operation.path ?? req.originalUrl
  const owner = createHash('sha256').update(by).digest('base64url')
  return `${owner}:${fingerprintOf(method, path, [by, filtersOf(call), decides, content.value])}`
}

/** Returns the owner in such a name, also behind a prefix; empty if there is none. */
export function ownerIn(key: string): string {
  return key.split(':').at(-2) ?? ''
}

/** An answer that a guard has checked, or changed, is not one for calls without that guard. */
function filtersOf({ answerFilters }: OpenCall): string[] {
  return answerFilters.map(({ name }) => name)
}

function decidingMembers({ headers }: Request, call: OpenCall, request: CallRequest): unknown {
  return {
    protocol: call.protocol.name,
    model: request.model.id,
    provider: request.provider,
    unsupported: request.unsupported,
    regions: call.principal?.lineRegions?.toSorted(),
    version: headers['anthropic-version'],
    beta: headers['anthropic-beta'],
  }
}

/** The headers of a request by which an app may choose another answer. */
export const CHOOSING_HEADERS = ['host', 'content-type', 'accept', 'accept-language'] as const

function decidingHeaders({ headers }: Request): unknown {
  return CHOOSING_HEADERS.map((name) => headers[name])
}
