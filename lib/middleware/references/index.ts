export {
  type KeptName,
  type KeptPage,
  type KeptStore,
  type KeptThing,
  KeptThings,
  type KeptThingsOptions,
  MemoryKeptStore,
  type MemoryKeptStoreOptions,
  ownThing,
} from '../../core/kept/index.ts'
export { type ReferencesOptions, references } from './references.ts'
