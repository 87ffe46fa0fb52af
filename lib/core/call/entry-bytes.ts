import type { Call } from './call.ts'
import type { CallLogEntry } from './call-entry.ts'
import type { AnswerBytes } from './parts.ts'
import { MAX_TRACE_BYTES } from './routing-summary.ts'

/** About how much memory an entry takes: to measure it exactly would cost as much as to write it. */
export function bytesOfEntry({ response_body: body, routing, request }: CallLogEntry): number {
  return roughly(body?.length ?? 0, routing, request?.provider)
}

/**
 * The same, of an entry that is not made yet.
 *
 * @param unsent what its answer still lacks.
 */
export function bytesOfEntryOf({ idempotency, routing, request }: Call, unsent: AnswerBytes | null): number {
  return roughly(idempotency?.bytesWith(unsent) ?? 0, routing, request?.provider)
}

interface Trace {
  readonly eliminated: readonly unknown[]
  readonly attempts: readonly unknown[]
}

function roughly(body: number, routing: Trace | null, provider: unknown): number {
  const trace = routing ? 200 * (routing.eliminated.length + 2 * routing.attempts.length) : 0
  return 2048 + body + Math.min(trace, MAX_TRACE_BYTES) + (provider ? 2048 : 0)
}
