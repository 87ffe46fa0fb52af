export {
  MemoryResourceStore,
  type MemoryResourceStoreOptions,
  type ResourceName,
  type ResourcePage,
  type ResourceStore,
  type UpstreamResource,
  UpstreamResources,
  type UpstreamResourcesOptions,
} from '../../core/upstream-resources/index.ts'
export { type ReferencesOptions, references } from './references.ts'
