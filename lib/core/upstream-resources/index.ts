export { Lately } from './lately.ts'
export { MemoryResourceStore, type MemoryResourceStoreOptions } from './memory-resource-store.ts'
export {
  ownThing,
  type ResourceName,
  type ResourcePage,
  type ResourceStore,
  type UpstreamResource,
} from './resource-store.ts'
export {
  type MadeThing,
  plainId,
  someUpstreamResources,
  UpstreamResources,
  type UpstreamResourcesOptions,
} from './upstream-resources.ts'
