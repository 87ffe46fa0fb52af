export {
  type AnswerStore,
  type ClaimRequest,
  type IdempotencyRecord,
  type IdempotencyStore,
  PINNED_UNTIL,
} from './idempotency-store.ts'
