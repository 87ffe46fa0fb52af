export { type KeptName, type KeptPage, type KeptStore, type KeptThing, ownThing } from './kept-store.ts'
export {
  aKeptThings,
  KeptThings,
  type KeptThingsOptions,
  type MadeThing,
  plainId,
} from './kept-things.ts'
export { MemoryKeptStore, type MemoryKeptStoreOptions } from './memory-kept-store.ts'
