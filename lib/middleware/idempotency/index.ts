export type {
  AnswerStore,
  ClaimRequest,
  IdempotencyRecord,
  IdempotencyStore,
} from '../../core/idempotency/index.ts'
export { type IdempotencyHandler, idempotency } from './idempotency.ts'
export type { IdempotencyOptions } from './idempotency-options.ts'
export { MemoryIdempotencyStore, type MemoryIdempotencyStoreOptions } from './memory-idempotency-store.ts'
