import { BrokenRecord } from '../../core/store-guard/index.ts'
import type { IdempotencyRecord } from './idempotency-store.ts'

/** @throws {BrokenRecord} if the answer of a store is neither a record nor undefined. */
export function recordIn(answer: IdempotencyRecord | undefined): IdempotencyRecord | undefined {
  if (answer === undefined) return undefined
  const { owner, fingerprint, state } = (answer ?? {}) as Partial<IdempotencyRecord>
  const isRecord = typeof owner === 'string' && typeof fingerprint === 'string'
  if (isRecord && (state === 'running' || state === 'completed')) return answer
  throw new BrokenRecord('idempotency: the answer of the store to "claim" is no record')
}

/** @throws {BrokenRecord} if the answer of a store is not whether the claim is held. */
export function booleanIn(answer: boolean): boolean {
  if (typeof answer === 'boolean') return answer
  throw new BrokenRecord('idempotency: the answer of the store is neither true nor false')
}
