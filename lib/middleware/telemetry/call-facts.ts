import type { AttemptRecord, Call, Elimination, Finish, LimitRefusal, Usage } from '../../core/call/index.ts'
import type { CallLabels } from './call-labels.ts'
import { type IdempotencyOutcome, idempotencyOutcome } from './idempotency-outcome.ts'

const NONE: readonly never[] = []

/** The data of an ended call for metrics, until it is recorded. Objects are reused, so no ended call is kept alive. */
export class CallFacts {
  operation: string | undefined = undefined
  model: string | undefined = undefined
  provider: string | undefined = undefined
  error: CallLabels['error'] = undefined
  status: number | undefined = undefined
  finish: Finish | undefined = undefined
  /** The duration of the call in milliseconds. */
  ms = 0
  /** Milliseconds from the start of the call to the first byte of a completed stream; -1 if there was none. */
  firstTokenMs = -1
  usage: Usage | null = null
  charged: bigint | null = null
  limit: LimitRefusal | null = null
  idempotency: IdempotencyOutcome | undefined = undefined
  eliminated: readonly Elimination[] = NONE
  attempts: readonly AttemptRecord[] = NONE
  retryBudgetSpent = false

  note(call: Call, labels: CallLabels, ms: number): void {
    const { outcome, routing, billing } = call
    this.operation = labels.operation
    this.model = labels.model
    this.provider = labels.provider
    this.error = labels.error
    this.status = outcome?.status
    this.finish = outcome?.finish
    this.ms = ms
    this.firstTokenMs = call.request?.stream ? firstTokenMs(call) : -1
    this.usage = call.usage
    this.charged = billing ? billing.charged : null
    this.limit = call.limit
    this.idempotency = call.idempotency ? idempotencyOutcome(call) : undefined
    this.eliminated = routing ? routing.eliminated : NONE
    this.attempts = routing ? routing.attempts : NONE
    this.retryBudgetSpent = routing?.retryBudgetSpent === true
  }

  /** Drops the references to parts of the call. */
  clear(): void {
    this.usage = null
    this.limit = null
    this.eliminated = NONE
    this.attempts = NONE
  }
}

function firstTokenMs({ outcome, routing, startedAt }: Call): number {
  if (outcome?.finish !== 'completed') return -1
  const last = routing?.attempts.at(-1)
  if (!last || last.firstByteMs === null) return -1
  return Math.max(0, last.startedAt - startedAt) + last.firstByteMs
}
