import type { AttemptEnd, Failure } from '../attempt/failure.ts'
import type { Candidate } from '../candidates/candidate.ts'
import type { BreakerAttempt, Verdict } from './account-breaker.ts'

/** Reports how an attempt went to the circuits and streaks of its line and model, and to the rest that keeps calls from them. */
export class AttemptReport {
  readonly #candidate: Candidate
  readonly #account: string
  /** The attempt as the breakers of line and model see it; undefined where there is none. */
  readonly #onLine: BreakerAttempt | undefined
  readonly #onModel: BreakerAttempt | undefined
  /** The part of the attempt that was reported. */
  #reported: 'nothing' | 'success' | 'all' = 'nothing'

  /** Begins an attempt, for which the circuits have just admitted the account. It must be given an end. */
  constructor(candidate: Candidate, account: string) {
    this.#candidate = candidate
    this.#account = account
    this.#onLine = candidate.state.circuit.begin(account)
    this.#onModel = candidate.modelState.circuit.begin(account)
  }

  /** Reports that the line answers well, up to its first output. */
  success(): void {
    if (this.#reported !== 'nothing') return
    this.#succeed()
    const { state, modelState } = this.#candidate
    state.streak.began()
    modelState.streak.began()
  }

  /**
   * Reports the end of the attempt, and begins a rest after a 429.
   *
   * @returns the milliseconds of the rest; undefined if there is none.
   */
  end(end: AttemptEnd): number | undefined {
    if (end.kind === 'served') {
      if (this.#reported === 'nothing') this.#succeed()
      const { state, modelState } = this.#candidate
      state.streak.served()
      modelState.streak.served()
    } else if (end.kind === 'abandoned') this.abort()
    else {
      const { code, retryAfterMs, fault } = end.failure
      if (fault === 'line') this.#failOnLine(reasonOf(end.failure))
      else if (fault === 'model') this.#failOnModel(reasonOf(end.failure))
      // The line refused because of the request or its own limits, so it could be reached.
      else this.#reportUnlessKnown('success', 'none')
      if (code === 'upstream_rate_limited') return this.#candidate.rest.rest(retryAfterMs)
    }
    return undefined
  }

  /** Reports that the attempt says nothing: its caller has left, or an error of ours ended it. */
  abort(): void {
    this.#reportUnlessKnown('none', 'none')
  }

  #succeed(): void {
    this.#report('success', 'success')
    this.#reported = 'success'
    this.#candidate.rest.answered()
  }

  #failOnLine(reason: string): void {
    if (this.#reported === 'success') this.#failAfterSuccess()
    else {
      this.#reportUnlessKnown('failure', 'none')
      const { state, modelState } = this.#candidate
      state.streak.failed(this.#account, reason)
      modelState.streak.failed(this.#account, reason)
    }
  }

  #failOnModel(reason: string): void {
    if (this.#reported === 'success') this.#failAfterSuccess()
    else {
      // The line could be reached, and takes our key.
      this.#reportUnlessKnown('success', 'failure')
      this.#candidate.modelState.streak.failed(this.#account, reason)
    }
  }

  /** Reports that the answer broke off after its first output. */
  #failAfterSuccess(): void {
    this.#reported = 'all'
    const { circuit, streak } = this.#candidate.modelState
    circuit.fail(this.#account)
    streak.brokeOff(this.#account)
  }

  #reportUnlessKnown(line: Verdict, model: Verdict): void {
    if (this.#reported === 'nothing') this.#report(line, model)
  }

  #report(line: Verdict, model: Verdict): void {
    this.#reported = 'all'
    const { state, modelState } = this.#candidate
    state.circuit.end(this.#onLine, this.#account, line)
    modelState.circuit.end(this.#onModel, this.#account, model)
  }
}

const MAX_REASON_LENGTH = 100

/** Returns why an attempt failed. Of the upstream's own words it has the names of the error: its message may quote the request. */
function reasonOf({ code, detail, error }: Failure): string {
  if (!error) return detail ?? code
  const names = [...new Set([error.type, error.code])].filter((name) => name !== '').join(': ')
  return names.slice(0, MAX_REASON_LENGTH) || code
}
