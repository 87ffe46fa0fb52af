export { MemoryResourceStore, type MemoryResourceStoreOptions } from './memory-resource-store.ts'
export { RecentValues } from './recent-values.ts'
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
