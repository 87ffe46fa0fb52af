import type { Logger, OpenCall } from '../call/index.ts'
import { GatewayError } from '../errors/index.ts'
import { threadDetails } from '../errors/thread-details.ts'
import type { Reference } from '../operations/index.ts'
import {
  aFunction,
  aKeepTime,
  aLogger,
  anObjectWith,
  checkOptions,
  type OptionRule,
  type OptionRules,
  someMilliseconds,
} from '../options/index.ts'
import { StoreAway, StoreGuard } from '../store-guard/index.ts'
import { BackgroundLoop } from '../timing/index.ts'
import { DeletedResources } from './deleted-resources.ts'
import { MemoryResourceStore } from './memory-resource-store.ts'
import type { ResourceName, ResourcePage, ResourceStore, UpstreamResource } from './resource-store.ts'

/** Options of {@link UpstreamResources}. */
export interface UpstreamResourcesOptions {
  /** The store of records. Defaults to this process's memory. */
  store?: ResourceStore
  /**
   * How long a response, a message, an item or a container can be found after it was last recorded, in milliseconds.
   * Other things can be found until they are deleted. Defaults to 30 days.
   */
  keepResourcesMs?: number
  /** How long an operation of the store may take before the store counts as away, in milliseconds. Defaults to 1500. */
  storeTimeoutMs?: number
  /** Logs outages. Defaults to the console. */
  logger?: Logger
  /** Called when the store goes away and when it is back, for metrics. Defaults to nothing. */
  onStoreChange?: (away: boolean) => void
}

const RULES: OptionRules<UpstreamResourcesOptions> = {
  store: anObjectWith('a ResourceStore, such as new MemoryResourceStore()', 'remember'),
  keepResourcesMs: aKeepTime,
  storeTimeoutMs: someMilliseconds,
  logger: aLogger,
  onStoreChange: aFunction(),
}

/** A thing that a line has just made, or named in an answer. */
export interface CreatedResource extends ResourceName {
  readonly tokens?: number
  /** Milliseconds since the epoch, if the upstream says when it deletes the thing. */
  readonly expiresAt?: number | undefined
}

/** Kinds of things that upstreams delete by themselves. */
const PASSING: ReadonlySet<string> = new Set(['response', 'message', 'item', 'container', 'audio'])

/** Longer ids are neither recorded nor looked up; no upstream is known to send one, and a key of Postgres has no room for it. */
const MAX_ID_BYTES = 1024

/** Looked up to learn whether the store is back. */
const PROBED: ResourceName = { kind: 'response', id: '' }

const PRUNE_INTERVAL_MS = 10 * 60_000
const BATCH_PAUSE_MS = 50
const BATCH_SIZE = 500

/**
 * Records the account and the line of each object that an upstream stores and a request can name: responses, files,
 * conversations and others. Close it at shutdown.
 *
 * @throws TypeError at construction if an option is invalid.
 * @example
 * const resources = new UpstreamResources({ store: new SqlResourceStore(db) })
 * app.post('/v1/responses', readRequest({ catalog }), references({ resources }), route({ catalog }))
 */
export class UpstreamResources {
  readonly #gone = new DeletedResources()
  readonly #store: ResourceStore
  readonly #guard: StoreGuard
  readonly #keepResourcesMs: number
  readonly #pruning: BackgroundLoop

  constructor(options: UpstreamResourcesOptions = {}) {
    checkOptions('UpstreamResources', options, RULES)
    const {
      store = new MemoryResourceStore(),
      keepResourcesMs = 30 * 86_400_000,
      storeTimeoutMs = 1500,
      logger,
      onStoreChange,
    } = options
    this.#store = store
    this.#keepResourcesMs = keepResourcesMs
    this.#guard = new StoreGuard({
      name: 'kept_things',
      effect: 'calls that name what a line keeps are refused with internal_error',
      logger,
      timeoutMs: storeTimeoutMs,
      rejectsAlone: true,
      onStoreChange,
    })
    this.#pruning = new BackgroundLoop(() => this.#prune(), PRUNE_INTERVAL_MS)
  }

  /**
   * Checks that things can be recorded. Returns undefined while the store works; while it is away, tries it.
   *
   * @throws {GatewayError} `internal_error`, as a rejection, if the store is still away.
   */
  ready(call: OpenCall): Promise<void> | undefined {
    if (!this.#guard.away) return undefined
    return this.#guard
      .run(() => this.#store.find('', [PROBED]))
      .then(
        () => {},
        (error) => refuseAway(call, error),
      )
  }

  /**
   * Records what a line keeps for the account of a call.
   *
   * @throws {GatewayError} `internal_error` if the store did not confirm the records.
   */
  async remember(call: OpenCall, line: string, made: readonly CreatedResource[]): Promise<void> {
    const now = Date.now()
    const resources = made
      .filter(({ id }) => isUsable(id))
      .map((resource) => this.#record(call, line, resource, now))
    if (resources.length === 0) return
    for (const resource of resources) this.#gone.delete(resource)
    await this.#guard.run(() => this.#store.remember(resources)).catch((error) => refuseAway(call, error))
  }

  /**
   * Returns the records of what a call's account owns among these names. Expired ones are left out.
   *
   * @throws {GatewayError} `internal_error` while the store is away.
   */
  async find(call: OpenCall, names: readonly ResourceName[]): Promise<readonly UpstreamResource[]> {
    const now = Date.now()
    const found = await this.#records(call, names)
    return found.filter(({ expiresAt }) => expiresAt === null || expiresAt > now)
  }

  /**
   * Returns the record of a thing that is or lately was the account's, as a place in its lists; undefined if there is none.
   *
   * @throws {GatewayError} `internal_error` while the store is away.
   */
  async place(call: OpenCall, name: ResourceName): Promise<UpstreamResource | undefined> {
    const [resource] = await this.#records(call, [name])
    return resource ?? this.#gone.find({ account: accountOf(call), kind: name.kind, id: plainId(name.id) })
  }

  /** Whether the line of a thing has said lately that it no longer has it. */
  isGone(resource: UpstreamResource): boolean {
    return this.#gone.find(resource)?.line === resource.line
  }

  /** Records that the line of a thing no longer has it. The record stays: a line may be wrong for a while. */
  noteGone(resource: UpstreamResource): void {
    this.#gone.add(resource)
  }

  async #records(call: OpenCall, names: readonly ResourceName[]): Promise<readonly UpstreamResource[]> {
    const usable = names.flatMap(({ kind, id }) => (isUsable(id) ? [{ kind, id: plainId(id) }] : []))
    if (usable.length === 0) return []
    const account = accountOf(call)
    return this.#guard.run(() => this.#store.find(account, usable)).catch((error) => refuseAway(call, error))
  }

  /**
   * Returns the records of a call's account, one page of them.
   *
   * @throws {GatewayError} `internal_error` while the store is away.
   */
  list(
    call: OpenCall,
    kind: string,
    page: Omit<ResourcePage, 'aliveAt'>,
  ): Promise<readonly UpstreamResource[]> {
    return this.#guard
      .run(() => this.#store.list(accountOf(call), kind, { ...page, aliveAt: Date.now() }))
      .catch((error) => refuseAway(call, error))
  }

  /**
   * Pins a call to the line that keeps all that it names, and returns the records.
   *
   * @throws {GatewayError} `not_found` if the account has no such thing; `invalid_request` if two lines keep them;
   * `internal_error` while the store is away.
   */
  async pin(call: OpenCall, references: readonly Reference[]): Promise<readonly UpstreamResource[]> {
    const found = await this.find(call, references)
    if (call.left) throw new GatewayError('client_closed_request')
    const byName = new Map(found.map((resource) => [`${resource.kind} ${resource.id}`, resource]))
    for (const reference of references) {
      const { kind, id } = reference
      const resource = byName.get(`${kind} ${plainId(id)}`)
      if (!resource) throw notFound(reference)
      if (call.pin && call.pin.line !== resource.line) throw elsewhere(reference)
      call.pin ??= { line: resource.line, holds: `the ${words(kind)}` }
    }
    return found
  }

  /** @throws {StoreAway} if the store did not confirm the deletion. */
  forget(call: OpenCall, { kind, id }: ResourceName): Promise<void> {
    const account = accountOf(call)
    const name = { kind, id: plainId(id) }
    return this.#guard.run(async () => {
      const [resource] = await this.#store.find(account, [name])
      await this.#store.forget(account, name)
      if (resource) this.#gone.add(resource)
    })
  }

  /** Stops deleting expired records. */
  close(): void {
    void this.#pruning.close()
  }

  #record(
    call: OpenCall,
    line: string,
    { kind, id, tokens = 0, expiresAt }: CreatedResource,
    now: number,
  ): UpstreamResource {
    return {
      kind,
      id: plainId(id),
      account: accountOf(call),
      key: call.principal?.keyId ?? null,
      line,
      model: call.request?.model.id ?? call.model,
      tokens: Math.ceil(tokens),
      createdAt: now,
      expiresAt: expiresAt ?? (PASSING.has(kind) ? now + this.#keepResourcesMs : null),
    }
  }

  /** Deletes expired records in batches with pauses, so that other operations do not wait long for the store. */
  async #prune(): Promise<void> {
    // The guard has logged the outage; the next round tries again.
    const pruned = await this.#guard.run(() => this.#store.prune(Date.now(), BATCH_SIZE)).catch(() => 0)
    if (pruned === BATCH_SIZE) this.#pruning.runIn(BATCH_PAUSE_MS)
  }
}

/** Returns the account whose things a call may use. Without `authenticate`, all calls share one. */
function accountOf({ principal }: OpenCall): string {
  return principal?.accountId ?? ''
}

function isUsable(id: string): boolean {
  return id !== '' && Buffer.byteLength(id) <= MAX_ID_BYTES && id.isWellFormed()
}

/** An id behind its collection. Nothing else may stand before it: an upstream could find another id there. */
const WITH_COLLECTION = /^(?:https?:\/\/[\w.:-]+\/v1\w*\/)?(?:cachedContents|files)\/([^/?#]+)$/

/** Returns the id without the collection that Google writes before it, `cachedContents/abc`, alone or at the end of a URL. */
export function plainId(id: string): string {
  return WITH_COLLECTION.exec(id)?.[1] ?? id
}

function refuseAway(call: OpenCall, error: unknown): never {
  throw call.refuse('internal_error', {
    message: 'Stored objects cannot be looked up or recorded at the moment. Retry.',
    cause: error,
    foreseen: error instanceof StoreAway,
  })
}

export const someUpstreamResources: OptionRule = {
  be: 'an UpstreamResources, such as new UpstreamResources()',
  accepts: (value) => value instanceof UpstreamResources,
}

/** A kind as a sentence says it. */
function words(kind: string): string {
  return kind.replaceAll('_', ' ')
}

/** The refusal of a request that names something the account does not have. */
function notFound({ kind, place }: Pick<Reference, 'kind' | 'place'>): GatewayError {
  const named = place()
  if (kind === 'item') return itemNotFound(named)
  const at = named === '' ? '' : ` (${named})`
  const instead = kind === 'response' ? ' Send the conversation as input instead.' : ''
  return new GatewayError('not_found', {
    ...(kind === 'message' && { details: threadDetails('thread_not_found') }),
    message: `There is no stored ${words(kind)} with this id${at}, or it has expired.${instead}`,
  })
}

/** An item that is only named is an input that cannot be read, for clients that name items by themselves. */
function itemNotFound(param: string): GatewayError {
  return new GatewayError('invalid_request', {
    param,
    message: `There is no stored item with this id (${param}), or it has expired. Send whole items: set "store" to false.`,
  })
}

/** The refusal of a request whose things no single line has. */
function elsewhere({ place }: Reference): GatewayError {
  return new GatewayError('invalid_request', {
    param: place(),
    message:
      'The objects that the request names are stored in different places. Name only objects of one place.',
  })
}
