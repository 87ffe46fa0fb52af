import type { IncomingMessage } from 'node:http'
import { isRead, type OpenCall, readAttribution, upgradeOf } from '../../../core/call/index.ts'
import { GatewayError } from '../../../core/errors/index.ts'
import { isJsonObject, type JsonObject, parseJson } from '../../../core/json/index.ts'
import { type Reference, referencesInQuery } from '../../../core/operations/body/references.ts'
import { isEventStream } from '../../../core/protocols/index.ts'
import type { CreatedResource, UpstreamResources } from '../../../core/upstream-resources/index.ts'
import { type BodyRules, type CheckedBody, checkBody } from '../body-checks/body.ts'
import { queryOf } from '../request-path.ts'
import { filesToRun, type RefusedFiles } from './batch-files.ts'
import { isCursor } from './list-query.ts'
import { filesNamedBy, namesFiles, resourcesMadeBy } from './made-resources.ts'
import { type LinesOfList, OwnList } from './own-list.ts'
import { type DeclaredCollection, type PathResource, resourceOfPath } from './resource-path.ts'
import { bytesWithOwnResults, namesResults } from './results-address.ts'

/** The settings that all requests of a rule share. */
export interface OwnedRule extends BodyRules {
  readonly resources: UpstreamResources
  readonly declared: DeclaredCollection | undefined
  readonly refusedFiles: RefusedFiles
  /** The address that paths such as `/files` follow, as the caller used it. */
  readonly address: string
}

const JSON_TYPE = /^application\/(?:[\w.+-]+\+)?json\b/i

/** A request, once it is known what it names. */
interface CheckedRequest {
  readonly resource: PathResource | undefined
  readonly query: URLSearchParams
  readonly req: IncomingMessage
  readonly body: CheckedBody
}

/** A forwarded request that can only use what its account owns. */
export class OwnedRequest {
  readonly body: CheckedBody
  readonly #call: OpenCall
  readonly #rule: OwnedRule
  readonly #resource: PathResource | undefined
  readonly #query: URLSearchParams
  readonly #method: string
  readonly #isUpgrade: boolean

  /**
   * Checks a request, and pins it to the line that keeps what it names.
   *
   * @param path the path behind `/v1`, with its query.
   * @param signal aborted, with the reason, when the call must end.
   * @throws {GatewayError} `not_found` for what the account does not own; `invalid_request`, `unsupported_feature` or
   * `request_too_large` for a body that cannot be checked; `internal_error` while the store is away.
   */
  static async check(
    call: OpenCall,
    req: IncomingMessage,
    path: string,
    rule: OwnedRule,
    signal: AbortSignal,
  ): Promise<OwnedRequest> {
    const resource = resourceOfPath(path, rule.declared)
    const query = queryOf(path)
    const named = [...namedByPath(resource), ...namedByQuery(query)]
    // A path of another account is refused before the body is read.
    if (named.length > 0) await rule.resources.pin(call, named)
    const body = await checkBody(call, req, rule, signal)
    if (body.json) readAttribution(call, body.json)
    if (body.json && resource?.kind === 'eval') refuseForeignRows(body.json)
    if (body.references.length > 0) await rule.resources.pin(call, body.references)
    const owned = new OwnedRequest(call, rule, { resource, query, req, body })
    // Refuse now, not after a line has made something that cannot be recorded.
    if (owned.createsResource) await rule.resources.ready(call)
    return owned
  }

  private constructor(call: OpenCall, rule: OwnedRule, { resource, query, req, body }: CheckedRequest) {
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
  listOn(lines: LinesOfList): OwnList | undefined {
    const resource = this.#resource
    const isList = resource?.id === undefined && isRead(this.#method) && !this.#isUpgrade
    if (!resource || !isList || resource.isOpen) return undefined
    return new OwnList(this.#call, this.#rule, resource, this.#query, lines)
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
    return this.createsResource && isEventStream(type)
  }

  /**
   * Records what an answer says its line keeps.
   *
   * @throws {GatewayError} `internal_error` if the store did not confirm the records.
   */
  async read(line: string, body: Buffer): Promise<void> {
    const json = parseJson(body.toString())
    const { kind = '' } = this.#resource ?? {}
    const made: CreatedResource[] = this.createsResource
      ? resourcesMadeBy(json, kind)
      : filesNamedBy(json, kind)
    const tokens = kind === 'conversation' ? Math.ceil(this.body.bytes / BYTES_PER_TOKEN) : 0
    await this.#rule.resources.remember(
      this.#call,
      line,
      made.map((resource) => ({ ...resource, tokens })),
    )
  }

  /**
   * Records what the `Location` of an answer names that its line has made: the answer about a call of Realtime is no JSON.
   *
   * @returns its address at the gateway; undefined if it names nothing.
   * @throws {GatewayError} `internal_error` if the store did not confirm the record.
   */
  async readLocation(line: string, location: string | undefined): Promise<string | undefined> {
    const made = location !== undefined && this.createsResource ? this.#resourceAt(location) : undefined
    if (made?.id === undefined || !made.whole || made.kind !== this.#resource?.kind) return undefined
    const { kind, id, collection } = made
    await this.#rule.resources.remember(this.#call, line, [{ kind, id }])
    return `${this.#rule.address}/${collection}/${encodeURIComponent(id)}`
  }

  /** Returns what an address of the line is about; undefined for any other text. */
  #resourceAt(location: string): PathResource | undefined {
    const path = URL.parse(location, 'http://line')?.pathname.replace(/^.*?\/v1(?=\/)/, '')
    try {
      return path === undefined ? undefined : resourceOfPath(path, this.#rule.declared)
    } catch {
      // It has an escape that cannot be read, or an empty segment.
      return undefined
    }
  }

  /** Returns an answer that was read as its caller gets it. */
  forCaller(body: Buffer): Buffer {
    return namesResults(this.#resource?.kind ?? '') ? bytesWithOwnResults(body, this.#rule.address) : body
  }

  /** Forgets what a successful request has deleted. A failure does no harm: the line no longer has it. */
  async end(): Promise<void> {
    const { kind, id, whole } = this.#resource ?? {}
    if (this.#method !== 'DELETE' || !whole || kind === undefined || id === undefined) return
    await this.#rule.resources.forget(this.#call, { kind, id }).catch(() => {})
  }

  /**
   * Whether the line does something of lasting effect with the request: it makes, changes, runs or deletes what it keeps. Its
   * caller pays for that whether it waits for the answer or not.
   */
  get hasLastingEffect(): boolean {
    return this.#resource !== undefined && !this.#isUpgrade && !isRead(this.#method)
  }

  /** Whether the request has a line make something. */
  get createsResource(): boolean {
    const adds = this.#method === 'POST' || this.#method === 'PUT'
    return this.#resource !== undefined && this.#resource.id === undefined && adds
  }

  get #readsAnswer(): boolean {
    if (this.#method === 'HEAD') return false
    const { kind = '', id, whole } = this.#resource ?? {}
    if (this.createsResource) return true
    // A path below a resource may return the text of a caller: a file's content, or an item.
    const namesMore = namesFiles(kind) || namesResults(kind)
    return id !== undefined && namesMore && (whole === true || this.#method === 'POST')
  }
}

/** About how many bytes of a conversation's JSON are a token. */
const BYTES_PER_TOKEN = 4

function namedByPath(resource: PathResource | undefined): Reference[] {
  if (resource?.id === undefined) return []
  return [{ kind: resource.kind, id: resource.id, place: () => '' }]
}

/** The cursor of a list is looked up when the list is read. The resources below an own one are own, too. */
function namedByQuery(query: URLSearchParams): readonly Reference[] {
  return referencesInQuery(query).filter(({ place }) => !isCursor(place()))
}

/** Where the rows of an eval's run can come from. Any other source is what all accounts have stored at the line. */
const OWN_SOURCES: ReadonlySet<unknown> = new Set(['file_content', 'file_id'])

/** @throws {GatewayError} `unsupported_feature` for a run of an eval over what other accounts have stored, too. */
export function refuseForeignRows({ data_source: data }: JsonObject): void {
  const source = isJsonObject(data) ? data.source : undefined
  if (!isJsonObject(source) || OWN_SOURCES.has(source.type)) return
  throw new GatewayError('unsupported_feature', {
    param: 'data_source.source',
    message:
      'An eval cannot run over stored completions or responses. Send the rows, or name a file that has them.',
  })
}
