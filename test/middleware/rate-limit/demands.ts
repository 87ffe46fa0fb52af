import { newRequestId } from '../../../lib/core/call/index.ts'
import type { Demand, Limit, LimitKind } from '../../../lib/middleware/rate-limit/index.ts'

export const WINDOW_MS = 60_000

/** A limit of a subject. */
export function limit(kind: LimitKind, subject: string, max: number, cost = 1): Limit {
  return { kind, level: 'key', subject, max, cost, key: `${kind}:key:${subject}` }
}

/** A demand of some limits; every one has a sender of its own unless it names one. */
export function demand(limits: readonly Limit[], members: Partial<Demand> = {}): Demand {
  const id = newRequestId()
  return {
    id,
    sender: id,
    windowMs: WINDOW_MS,
    charges: limits.filter(({ kind }) => kind !== 'concurrency'),
    slots: limits.filter(({ kind }) => kind === 'concurrency'),
    ...members,
  }
}
