export { type KeptName, type KeptStore, type KeptThing, ownThing } from './kept-store.ts'
export { KeptThings, type KeptThingsOptions, type MadeThing, plainId } from './kept-things.ts'
export { MemoryKeptStore, type MemoryKeptStoreOptions } from './memory-kept-store.ts'
