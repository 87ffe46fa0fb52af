export type { CallPage, CallQuery, CallStore } from './call-store.ts'
export { MemoryCallStore, type MemoryCallStoreOptions } from './memory-call-store.ts'
