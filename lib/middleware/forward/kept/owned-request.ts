import type { IncomingMessage } from 'node:http'
import type { Call } from '../../../core/call/index.ts'
import { GatewayError } from '../../../core/errors/index.ts'
import { isJsonObject } from '../../../core/json/index.ts'
import { type KeptThings, type MadeThing, plainId } from '../../../core/kept/index.ts'
import { type Reference, referencesInQuery } from '../../../core/operations/index.ts'
import { type JudgedBody, judgeBody } from './judged-body.ts'
import { idOf, listIn, madeBy, shortened, yieldedBy, yieldsThings } from './kept-answer.ts'
import { type DeclaredCollection, type KeptResource, keptResource } from './kept-resource.ts'

/** What the requests of a rule share. */
export interface OwnedRule {
  readonly kept: KeptThings
  readonly declared: DeclaredCollection | undefined
  /** The largest JSON body. */
  readonly bodyLimitBytes: number
}

/** Parameters of lists that name the thing where a page begins. */
const CURSORS: ReadonlySet<string> = new Set(['after', 'after_id', 'before', 'before_id'])

const JSON_TYPE = /^application\/(?:[\w.+-]+\+)?json\b/i

/** A forwarded request that can only use what its account owns. */
export class OwnedRequest {
  readonly body: JudgedBody
  readonly #call: Call
  readonly #rule: OwnedRule
  readonly #resource: KeptResource | undefined
  readonly #method: string

  /**
   * Judges a request, and pins it to the line that keeps what it names.
   *
   * @param path the path behind `/v1`, with its query.
   * @throws {GatewayError} `not_found` for what the account does not own; `invalid_request`, `unsupported_feature` or
   * `request_too_large` for a body that cannot be judged; `internal_error` while the store is away.
   */
  static async judge(call: Call, req: IncomingMessage, path: string, rule: OwnedRule): Promise<OwnedRequest> {
    const resource = keptResource(path, rule.declared)
    const named = [...namedByPath(resource), ...namedByQuery(path, resource)]
    // A path of another account is refused before the body is read.
    if (named.length > 0) await rule.kept.pin(call, named)
    const body = await judgeBody(req, rule.bodyLimitBytes)
    if (body.references.length > 0) await rule.kept.pin(call, body.references)
    const owned = new OwnedRequest(call, rule, resource, req.method ?? 'GET', body)
    // Refuse now, not after a line has made something that cannot be recorded.
    if (owned.#makes) await rule.kept.ready(call)
    return owned
  }

  private constructor(
    call: Call,
    rule: OwnedRule,
    resource: KeptResource | undefined,
    method: string,
    body: JudgedBody,
  ) {
    this.#call = call
    this.#rule = rule
    this.#resource = resource
    this.#method = method
    this.body = body
  }

  /** Headers of the request to the line: an answer that is read must not be compressed. */
  get headers(): Readonly<Record<string, string>> {
    return this.#readsAnswer ? { 'accept-encoding': 'identity' } : {}
  }

  /** Whether the body of a successful answer must be read before it is sent. */
  mustRead(type: string | undefined): boolean {
    return this.#lists || (this.#readsAnswer && JSON_TYPE.test(type ?? ''))
  }

  /**
   * Records what an answer says its line keeps, and removes from a list what is another account's.
   *
   * @returns the body to send.
   * @throws {GatewayError} `internal_error` if the store did not confirm the records; `upstream_error` for a list that
   * cannot be read.
   */
  async read(line: string, body: Buffer): Promise<Buffer> {
    const json = parsed(body)
    const { kind = '' } = this.#resource ?? {}
    if (this.#lists) return this.#ownOf(json, kind)
    const made: MadeThing[] = this.#makes ? madeBy(json, kind) : yieldedBy(json, kind)
    const tokens = kind === 'conversation' ? Math.ceil(this.body.bytes / BYTES_PER_TOKEN) : 0
    await this.#rule.kept.remember(
      this.#call,
      line,
      made.map((thing) => ({ ...thing, tokens })),
    )
    return body
  }

  /** Forgets what a successful request has deleted. A failure does no harm: the line no longer has it. */
  async end(): Promise<void> {
    const { kind, id, whole } = this.#resource ?? {}
    if (this.#method !== 'DELETE' || !whole || kind === undefined || id === undefined) return
    await this.#rule.kept.forget(this.#call, { kind, id }).catch(() => {})
  }

  get #lists(): boolean {
    return this.#resource?.id === undefined && this.#resource !== undefined && this.#method === 'GET'
  }

  get #makes(): boolean {
    const adds = this.#method === 'POST' || this.#method === 'PUT'
    return this.#resource !== undefined && this.#resource.id === undefined && adds
  }

  get #readsAnswer(): boolean {
    const { kind = '', id, whole } = this.#resource ?? {}
    if (this.#lists || this.#makes) return true
    // What is below a thing may be what a caller wrote: a file's content, or an item.
    return id !== undefined && yieldsThings(kind) && (whole === true || this.#method === 'POST')
  }

  async #ownOf(json: unknown, kind: string): Promise<Buffer> {
    const list = listIn(json)
    if (!list) throw new GatewayError('upstream_error')
    const names = list.items.map((item) => ({ kind, id: idOf(item) ?? '' }))
    const found = await this.#rule.kept.find(this.#call, names)
    const own = new Set(found.map(({ id }) => id))
    const items = list.items.filter((item) => own.has(plainId(idOf(item) ?? '')))
    return Buffer.from(JSON.stringify(shortened(list, items)))
  }
}

/** About how many bytes of a conversation's JSON are a token. */
const BYTES_PER_TOKEN = 4

function namedByPath(resource: KeptResource | undefined): Reference[] {
  if (resource?.id === undefined) return []
  return [{ kind: resource.kind, id: resource.id, place: () => '' }]
}

function namedByQuery(path: string, resource: KeptResource | undefined): Reference[] {
  const query = new URLSearchParams(path.includes('?') ? path.slice(path.indexOf('?')) : '')
  const named = referencesInQuery(query).filter(({ place }) => !CURSORS.has(place()))
  // The things below an own one are own, too.
  if (resource?.id !== undefined || !resource) return named
  for (const [name, id] of query)
    if (CURSORS.has(name)) named.push({ kind: resource.kind, id, place: () => name })
  return named
}

function parsed(body: Buffer): unknown {
  try {
    const json: unknown = JSON.parse(body.toString('utf8'))
    return isJsonObject(json) ? json : undefined
  } catch {
    return undefined
  }
}
