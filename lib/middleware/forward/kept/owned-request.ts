import type { IncomingMessage } from 'node:http'
import { type Call, readAttribution, upgradeOf } from '../../../core/call/index.ts'
import { parseJson } from '../../../core/json/index.ts'
import type { KeptThings, MadeThing } from '../../../core/kept/index.ts'
import { type Reference, referencesInQuery } from '../../../core/operations/body/references.ts'
import { isEventStream } from '../../../core/protocols/index.ts'
import { queryOf } from '../relay-path.ts'
import { filesToRun } from './batch-lines.ts'
import { type BodyRules, type JudgedBody, judgeBody } from './judged-body.ts'
import { madeBy, yieldedBy, yieldsThings } from './kept-answer.ts'
import { type DeclaredCollection, type KeptResource, keptResource } from './kept-resource.ts'
import { isCursor } from './list-query.ts'
import { type ListedLines, OwnList } from './own-list.ts'
import { refuseForeignRows } from './own-rows.ts'

/** What the requests of a rule share. */
export interface OwnedRule extends BodyRules {
  readonly kept: KeptThings
  readonly declared: DeclaredCollection | undefined
}

const JSON_TYPE = /^application\/(?:[\w.+-]+\+)?json\b/i

/** A request, once it is known what it names. */
interface JudgedRequest {
  readonly resource: KeptResource | undefined
  readonly query: URLSearchParams
  readonly req: IncomingMessage
  readonly body: JudgedBody
}

/** A forwarded request that can only use what its account owns. */
export class OwnedRequest {
  readonly body: JudgedBody
  readonly #call: Call
  readonly #rule: OwnedRule
  readonly #resource: KeptResource | undefined
  readonly #query: URLSearchParams
  readonly #method: string
  readonly #isUpgrade: boolean

  /**
   * Judges a request, and pins it to the line that keeps what it names.
   *
   * @param path the path behind `/v1`, with its query.
   * @param signal aborted, with the reason, when the call must end.
   * @throws {GatewayError} `not_found` for what the account does not own; `invalid_request`, `unsupported_feature` or
   * `request_too_large` for a body that cannot be judged; `internal_error` while the store is away.
   */
  static async judge(
    call: Call,
    req: IncomingMessage,
    path: string,
    rule: OwnedRule,
    signal: AbortSignal,
  ): Promise<OwnedRequest> {
    const resource = keptResource(path, rule.declared)
    const query = queryOf(path)
    const named = [...namedByPath(resource), ...namedByQuery(query)]
    // A path of another account is refused before the body is read.
    if (named.length > 0) await rule.kept.pin(call, named)
    const body = await judgeBody(call, req, rule, signal)
    if (body.json) readAttribution(call, body.json)
    if (body.json && resource?.kind === 'eval') refuseForeignRows(body.json)
    if (body.references.length > 0) await rule.kept.pin(call, body.references)
    const owned = new OwnedRequest(call, rule, { resource, query, req, body })
    // Refuse now, not after a line has made something that cannot be recorded.
    if (owned.makes) await rule.kept.ready(call)
    return owned
  }

  private constructor(call: Call, rule: OwnedRule, { resource, query, req, body }: JudgedRequest) {
    this.#call = call
    this.#rule = rule
    this.#resource = resource
    this.#query = query
    this.#method = req.method ?? 'GET'
    this.#isUpgrade = upgradeOf(req) !== undefined
    this.body = body
  }

  /**
   * Returns the list that the request asks for; undefined if it asks for something else.
   *
   * @throws {GatewayError} `invalid_request` for a query that cannot be read.
   */
  listOn(lines: ListedLines): OwnList | undefined {
    const resource = this.#resource
    const reads = this.#method === 'GET' || this.#method === 'HEAD'
    if (!resource || resource.id !== undefined || resource.isOpen || !reads || this.#isUpgrade)
      return undefined
    return new OwnList(this.#call, this.#rule.kept, resource, this.#query, lines)
  }

  /** The files whose lines the request has run. */
  get filesToRun(): ReadonlySet<string> {
    return filesToRun(this.body.references)
  }

  /** Headers of the request to the line: an answer that is read must not be compressed. */
  get headers(): Readonly<Record<string, string>> {
    return this.#readsAnswer ? { 'accept-encoding': 'identity' } : {}
  }

  /** Whether the body of a successful answer must be read before it is sent. */
  mustRead(type: string | undefined): boolean {
    return this.#readsAnswer && JSON_TYPE.test(type ?? '')
  }

  /** Whether the first event of a successful answer must be read before it is sent: it names what was made. */
  mustReadEvent(type: string | undefined): boolean {
    return this.makes && isEventStream(type)
  }

  /**
   * Records what an answer says its line keeps.
   *
   * @throws {GatewayError} `internal_error` if the store did not confirm the records.
   */
  async read(line: string, body: Buffer): Promise<void> {
    const json = parseJson(body.toString())
    const { kind = '' } = this.#resource ?? {}
    const made: MadeThing[] = this.makes ? madeBy(json, kind) : yieldedBy(json, kind)
    const tokens = kind === 'conversation' ? Math.ceil(this.body.bytes / BYTES_PER_TOKEN) : 0
    await this.#rule.kept.remember(
      this.#call,
      line,
      made.map((thing) => ({ ...thing, tokens })),
    )
  }

  /** Forgets what a successful request has deleted. A failure does no harm: the line no longer has it. */
  async end(): Promise<void> {
    const { kind, id, whole } = this.#resource ?? {}
    if (this.#method !== 'DELETE' || !whole || kind === undefined || id === undefined) return
    await this.#rule.kept.forget(this.#call, { kind, id }).catch(() => {})
  }

  /** Whether the request has a line make something. */
  get makes(): boolean {
    const adds = this.#method === 'POST' || this.#method === 'PUT'
    return this.#resource !== undefined && this.#resource.id === undefined && adds
  }

  get #readsAnswer(): boolean {
    if (this.#method === 'HEAD') return false
    const { kind = '', id, whole } = this.#resource ?? {}
    if (this.makes) return true
    // What is below a thing may be what a caller wrote: a file's content, or an item.
    return id !== undefined && yieldsThings(kind) && (whole === true || this.#method === 'POST')
  }
}

/** About how many bytes of a conversation's JSON are a token. */
const BYTES_PER_TOKEN = 4

function namedByPath(resource: KeptResource | undefined): Reference[] {
  if (resource?.id === undefined) return []
  return [{ kind: resource.kind, id: resource.id, place: () => '' }]
}

/** What a list begins at is looked up when it is read. The things below an own one are own, too. */
function namedByQuery(query: URLSearchParams): readonly Reference[] {
  return referencesInQuery(query).filter(({ place }) => !isCursor(place()))
}
