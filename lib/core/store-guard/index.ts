export { boundedStore } from './bounded-store.ts'
export { eachOperation } from './each-operation.ts'
export { aPollTime, Polling } from './polling.ts'
export { BrokenRecord, StoreAway, StoreGuard, type StoreGuardOptions } from './store-guard.ts'
