export type { AnswerStore } from './answer-store.ts'
export { type IdempotencyHandler, type IdempotencyOptions, idempotency } from './idempotency.ts'
export type { ClaimRequest, IdempotencyRecord, IdempotencyStore } from './idempotency-store.ts'
export { MemoryIdempotencyStore, type MemoryIdempotencyStoreOptions } from './memory-idempotency-store.ts'
