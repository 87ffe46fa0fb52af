import type { AnswerBytes, IdempotencyTrace, RunningClaim } from '../../core/call/index.ts'
import type { AnswerBody } from './answer-body.ts'
import type { AnswerQueue } from './answer-queue.ts'

/** Larger answers are kept apart: hundreds of shorter ones fit into the transaction of their charges. */
const MAX_IN_ENTRY = 4096

/** The options of {@link AnswerTrace}. */
export interface AnswerTraceOptions {
  readonly requestId: string
  readonly account: string
  readonly body: AnswerBody
  /** Keeps large answers apart; undefined: each is in its entry. */
  readonly answers: AnswerQueue | undefined
  readonly completedByLedger: boolean
}

/** The use of an Idempotency-Key by one call, and the answer that is kept for it. */
export class AnswerTrace implements IdempotencyTrace {
  readonly key: string
  readonly completedByLedger: boolean
  originalRequestId: string | null = null
  responseBody: string | null = null
  claim: RunningClaim | null = null
  partsApart = 0
  readonly #options: AnswerTraceOptions
  #keeping: Promise<boolean> | undefined

  constructor(key: string, options: AnswerTraceOptions) {
    this.key = key
    this.completedByLedger = options.completedByLedger
    this.#options = options
  }

  bodyWith(unsent: AnswerBytes | null): string | null {
    return this.#options.body.text(unsent)
  }

  bytesWith(unsent: AnswerBytes | null): number {
    return this.partsApart > 0 ? 0 : this.#options.body.bytesWith(unsent)
  }

  keepApart(unsent: AnswerBytes | null): Promise<boolean> | undefined {
    const { answers, body, account, requestId } = this.#options
    if (this.#keeping) return this.#keeping
    const pieces = answers && body.bytesBeyond(MAX_IN_ENTRY, unsent)
    if (!pieces) return undefined
    this.partsApart = answers.partsOf(pieces)
    this.#keeping = answers.keep(account, requestId, pieces).then((kept) => {
      // The answer was sent and only its copy is missing, so the call does not fail.
      if (!kept) this.discard()
      return kept
    })
    return this.#keeping
  }

  keep(output: AnswerBytes): void {
    this.#options.body.addUnsent(output)
  }

  discard(): void {
    const { answers, body, requestId } = this.#options
    body.discard()
    if (this.partsApart > 0) answers?.drop(requestId)
    this.partsApart = 0
  }
}
