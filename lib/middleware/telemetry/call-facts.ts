import type { AttemptRecord, Call, Elimination, Finish, LimitRefusal, Usage } from '../../core/call/index.ts'
import type { Catalog } from '../../core/catalog/index.ts'
import type { ErrorCode } from '../../core/errors/index.ts'
import { OTHER } from './attributes.ts'
import { type IdempotencyOutcome, idempotencyOutcome } from './idempotency-outcome.ts'

/**
 * The attribute values of a call. Each comes from a list that the app defines: the operations, the models and lines
 * of its catalogue, the table of codes. No value is copied from what a caller sent.
 */
export interface CallLabels {
  /** `other` for a call outside the table of operations, such as pass-through; undefined if no endpoint was reached. */
  readonly operation: string | undefined
  /** Undefined if no model was requested. */
  readonly model: string | undefined
  /** The provider of the line that was tried last; undefined if none was. */
  readonly provider: string | undefined
  readonly error: ErrorCode | typeof OTHER | undefined
}

/** The operations that have a name in the semantic conventions; the others keep their own. */
const CONVENTIONAL: Readonly<Record<string, string>> = {
  'chat.completions': 'chat',
  messages: 'chat',
  responses: 'chat',
  completions: 'text_completion',
}

/** Returns the labels of an ended call. */
export function labelsOf(call: Call, catalog: Catalog | undefined): CallLabels {
  const { request, routing, model, outcome } = call
  return {
    operation: request
      ? (CONVENTIONAL[request.operation.name] ?? request.operation.name)
      : routing
        ? OTHER
        : undefined,
    model: request ? request.model.id : model === null ? undefined : knownModel(model, catalog),
    provider: routing?.attempts.at(-1)?.provider,
    error: outcome?.errorCode ?? (outcome && outcome.status >= 400 ? OTHER : undefined),
  }
}

/** Returns a model's id if the catalogue has it, and `other` if not. */
export function knownModel(model: string, catalog: Catalog | undefined): string {
  return catalog?.models.has(model) ? model : OTHER
}

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
