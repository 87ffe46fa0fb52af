export { Lately } from './lately.ts'
export { MemoryResourceStore, type MemoryResourceStoreOptions } from './memory-resource-store.ts'
export {
  ownResource,
  type ResourceName,
  type ResourcePage,
  type ResourceStore,
  type UpstreamResource,
} from './resource-store.ts'
export {
  type CreatedResource,
  plainId,
  someUpstreamResources,
  UpstreamResources,
  type UpstreamResourcesOptions,
} from './upstream-resources.ts'
