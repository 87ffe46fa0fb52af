import { FairQueue } from '../fair-queue/index.ts'
import { aNumber, checkOptions } from '../options/index.ts'
import {
  ownResource,
  type ResourceName,
  type ResourcePage,
  type ResourceStore,
  type UpstreamResource,
} from './resource-store.ts'

/** Options of {@link MemoryResourceStore}. */
export interface MemoryResourceStoreOptions {
  /** Most things to hold; of the account with the most, the oldest are dropped and no longer found. Defaults to 100000. */
  maxResources?: number
}

/**
 * A store of upstream resources in this process's memory. It serves one process and ends with it.
 *
 * @throws TypeError at construction if an option is invalid.
 * @example
 * const resources = new UpstreamResources({ store: new MemoryResourceStore({ maxResources: 10_000 }) })
 */
export class MemoryResourceStore implements ResourceStore {
  readonly #byName = new Map<string, readonly UpstreamResource[]>()
  /** The names of each account's things of each kind. */
  readonly #namesOf = new Map<string, Set<string>>()
  /** Things in the order in which they came, as {@link orderKeyOf}. */
  readonly #order: FairQueue<string>

  constructor(options: MemoryResourceStoreOptions = {}) {
    checkOptions<MemoryResourceStoreOptions>('MemoryResourceStore', options, {
      maxResources: aNumber('at least 1', 1),
    })
    const { maxResources = 100_000 } = options
    this.#order = new FairQueue({ maxItems: maxResources })
  }

  async remember(resources: readonly UpstreamResource[]): Promise<void> {
    for (const resource of resources) {
      const name = keyOf(resource)
      const known = this.#byName.get(name) ?? []
      const { createdAt } = known.find(({ account }) => account === resource.account) ?? resource
      this.#byName.set(name, [...without(known, resource.account), { ...resource, createdAt }])
      this.#addName(resource, name)
      for (const dropped of this.#order.add(resource.account, orderKeyOf(resource))) this.#dropRecord(dropped)
    }
  }

  async find(account: string, names: readonly ResourceName[]): Promise<UpstreamResource[]> {
    return names.flatMap((name) => ownResource(this.#byName.get(keyOf(name)) ?? [], account) ?? [])
  }

  async list(account: string, kind: string, page: ResourcePage): Promise<UpstreamResource[]> {
    const { lines, order, after, aliveAt, limit } = page
    const direction = order === 'newest' ? -1 : 1
    const isOnPage = (resource: UpstreamResource): boolean =>
      lines.includes(resource.line) &&
      (resource.expiresAt === null || resource.expiresAt > aliveAt) &&
      (!after || direction * inOrder(resource, after) > 0)
    return [...(this.#namesOf.get(ownerOf({ account, kind })) ?? [])]
      .flatMap((name) => ownResource(this.#byName.get(name) ?? [], account) ?? [])
      .filter(isOnPage)
      .sort((one, other) => direction * inOrder(one, other))
      .slice(0, limit)
  }

  async forget(account: string, name: ResourceName): Promise<void> {
    this.#order.delete(account, orderKeyOf({ account, ...name }))
    this.#drop(account, name)
  }

  async prune(before: number, limit: number): Promise<number> {
    let pruned = 0
    for (const resources of this.#byName.values()) {
      for (const resource of resources) {
        if (pruned >= limit) return pruned
        if (resource.expiresAt === null || resource.expiresAt >= before) continue
        await this.forget(resource.account, resource)
        pruned++
      }
    }
    return pruned
  }

  #addName(resource: UpstreamResource, name: string): void {
    const owner = ownerOf(resource)
    const names = this.#namesOf.get(owner) ?? new Set()
    this.#namesOf.set(owner, names.add(name))
  }

  #dropRecord(orderKey: string): void {
    const [account, kind, id] = JSON.parse(orderKey) as [string, string, string]
    this.#drop(account, { kind, id })
  }

  #drop(account: string, { kind, id }: ResourceName): void {
    const name = keyOf({ kind, id })
    const owner = ownerOf({ account, kind })
    const names = this.#namesOf.get(owner)
    names?.delete(name)
    if (names?.size === 0) this.#namesOf.delete(owner)
    const stay = without(this.#byName.get(name) ?? [], account)
    if (stay.length > 0) this.#byName.set(name, stay)
    else this.#byName.delete(name)
  }
}

function orderKeyOf({ account, kind, id }: Pick<UpstreamResource, 'account' | 'kind' | 'id'>): string {
  return JSON.stringify([account, kind, id])
}

function without(resources: readonly UpstreamResource[], account: string): readonly UpstreamResource[] {
  return resources.filter((resource) => resource.account !== account)
}

type Place = Pick<UpstreamResource, 'createdAt' | 'id'>

function inOrder(one: Place, other: Place): number {
  return one.createdAt - other.createdAt || (one.id < other.id ? -1 : one.id > other.id ? 1 : 0)
}

/** A kind has no space in it. */
function keyOf({ kind, id }: ResourceName): string {
  return `${kind} ${id}`
}

function ownerOf({ account, kind }: Pick<UpstreamResource, 'account' | 'kind'>): string {
  return `${kind} ${account}`
}
