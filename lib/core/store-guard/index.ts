export { BrokenRecord, StoreAway, StoreGuard, type StoreGuardOptions } from './store-guard.ts'
