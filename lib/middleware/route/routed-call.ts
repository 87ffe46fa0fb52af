import type { IncomingHttpHeaders, ServerResponse } from 'node:http'
import type { Call, CallEnding, CallOutcome, CallRequest, RoutingTrace } from '../../core/call/index.ts'
import { GatewayError } from '../../core/errors/index.ts'
import type { StreamReader } from '../../core/operations/index.ts'
import { Untranslatable } from '../../core/translate/index.ts'
import type { Failure } from '../../routing/attempt/outcome.ts'
import { type SpokenRequest, SpokenRequests } from '../../routing/attempt/spoken-request.ts'
import { upstreamRequest } from '../../routing/attempt/upstream-request.ts'
import type { Candidate } from '../../routing/candidates/candidate.ts'
import { circuitDetail, emptied } from '../../routing/candidates/filters.ts'
import type { RetryBudget } from '../../routing/candidates/retry-budget.ts'
import { verdict } from '../../routing/candidates/verdict.ts'
import type { CircuitPass } from '../../routing/lines/circuit.ts'
import { AnswerKeeping } from './attempt/answer-keeping.ts'
import { Attempt, type AttemptEnd } from './attempt/attempt.ts'
import { type DisconnectPolicy, DisconnectWatch } from './attempt/disconnect-watch.ts'
import { usageOfAnswer, usageOfStream } from './attempt/metering.ts'
import { CallerStream } from './relay/caller-stream.ts'
import { writeAnswer } from './relay/write-answer.ts'

/** What a routed call works with. */
export interface RoutedCallOptions extends DisconnectPolicy {
  readonly maxAttempts: number
}

/** Not the code's own text, which says to retry: what was produced would be produced, and billed, twice (spec 7.3). */
const BROKEN_OFF =
  'The upstream broke the answer off. Keep what has come: it is billed, and the whole request sent again is billed again.'

/** How an attempt ended that is not to be followed by another. */
type LastEnd = Exclude<AttemptEnd, { kind: 'failed'; committed: false }>

/** One call on its way over the candidates: attempts until one answers, then the answer to the caller. */
export class RoutedCall {
  readonly #call: Call
  readonly #request: CallRequest
  readonly #trace: RoutingTrace
  readonly #inbound: IncomingHttpHeaders
  readonly #res: ServerResponse
  readonly #options: RoutedCallOptions
  readonly #budget: RetryBudget
  readonly #failures: Failure[] = []

  constructor(
    call: Call,
    inbound: IncomingHttpHeaders,
    res: ServerResponse,
    options: RoutedCallOptions,
    budget: RetryBudget,
  ) {
    this.#call = call
    this.#request = call.request as CallRequest
    this.#trace = call.routing as RoutingTrace
    this.#inbound = inbound
    this.#res = res
    this.#options = options
    this.#budget = budget
  }

  /**
   * Tries the candidates in turn and writes the answer.
   *
   * @param all of the model, those that filters removed included.
   * @throws {GatewayError} the verdict; after the first byte, what the stream has to end with.
   */
  async run(candidates: readonly Candidate[], all: readonly Candidate[]): Promise<void> {
    const deadline = performance.now() + longestTotal(candidates)
    const requests = new SpokenRequests(this.#request, all)
    for (const candidate of candidates) {
      if (this.#call.left) return
      if (!this.#mayTry(deadline)) break
      const spoken = this.#spokenTo(candidate, requests)
      if (!spoken) continue
      const pass = this.#enter(candidate)
      if (!pass) continue
      this.#proveOrLeave(pass)
      const keeping = new AnswerKeeping(this.#call, candidate.line.id)
      const stream = new CallerStream(this.#res, {
        onCommit: () => pass.success(),
        beforeHead: () => keeping.beforeHead(attempt.reader),
        onUnsent: this.#call.idempotency?.keep,
      })
      const upstream = upstreamRequest(candidate, this.#request, spoken, this.#inbound)
      const attempt = new Attempt(candidate, this.#request, spoken, upstream, deadline, stream)
      stream.attach(attempt)
      const watch = new DisconnectWatch(this.#call, attempt, stream, this.#options)
      const end = await attempt.run()
      watch.stop(end)
      this.#trace.attempts.push(attempt.record)
      if (watch.trace) this.#trace.disconnect = watch.trace
      if (end.kind === 'failed' && !end.committed) {
        this.#note(candidate, pass, end.failure)
        continue
      }
      if (stream.opened) await stream.opened
      this.#meter(attempt, pass, end)
      const noting = this.#keep(keeping, end)
      if (noting) await noting
      const settling = this.#settle(end)
      if (settling) await settling
      if (end.kind === 'answer' || end.kind === 'streamed') this.#call.prove()
      this.#finish(end)
      return
    }
    if (this.#failures.length > 0) throw verdict(this.#failures, this.#request.body)
    // A strategy may leave out what it does not want tried.
    if (candidates.length === 0) throw new GatewayError('no_candidate')
    throw emptied(all, this.#trace.eliminated, requests.fault)
  }

  /** Whether there may be another attempt at all. */
  #mayTry(deadline: number): boolean {
    if (this.#failures.length === 0) return true
    if (this.#failures.length >= this.#options.maxAttempts || this.#trace.retryBudgetSpent) return false
    return performance.now() < deadline
  }

  /** The request as this candidate takes it; undefined where it cannot be put so. */
  #spokenTo(candidate: Candidate, requests: SpokenRequests): SpokenRequest | undefined {
    const spoken = requests.for(candidate)
    if (!(spoken instanceof Untranslatable)) return spoken
    this.#trace.eliminated.push({ line: candidate.line.id, reason: 'protocol', detail: spoken.message })
    return undefined
  }

  /** The circuit's pass for an attempt on this candidate now, if it may start; a retry takes from the budget. */
  #enter({ line, state }: Candidate): CircuitPass | undefined {
    const { eliminated } = this.#trace
    if (state.restMs > 0) {
      eliminated.push({ line: line.id, reason: 'resting', detail: 'answered 429 a moment ago' })
      return
    }
    if (!state.circuit.admits) {
      eliminated.push({ line: line.id, reason: 'circuit_open', detail: circuitDetail(state.circuit.state) })
      return
    }
    if (this.#failures.length > 0 && !this.#budget.takeRetry()) {
      this.#trace.retryBudgetSpent = true
      return
    }
    return state.circuit.enter()
  }

  /** A call that may not go on leaves the circuit as it found it. */
  #proveOrLeave(pass: CircuitPass): void {
    try {
      this.#call.prove()
    } catch (error) {
      pass.abandon()
      throw error
    }
  }

  /** An attempt failed with nothing sent: the next may start unless the failure is the request's own. */
  #note({ state }: Candidate, pass: CircuitPass, failure: Failure): void {
    if (failure.retryAfterMs !== undefined) state.rest(failure.retryAfterMs)
    if (failure.blame) pass.failure()
    else pass.abandon()
    this.#failures.push(failure)
    if (!failure.retryable) throw verdict(this.#failures, this.#request.body)
  }

  /** Notes what the call used, and what is learned about the line. */
  #meter(attempt: Attempt, pass: CircuitPass, end: LastEnd): void {
    const { state, line, price } = attempt.candidate
    if (end.kind !== 'answer' && end.reader) this.#call.nextEventNumber = end.reader.nextEventNumber
    if (this.#request.operation.priceUnit !== 'none') this.#call.servedBy = { line: line.id, price }
    switch (end.kind) {
      case 'answer':
        pass.success()
        if (this.#call.servedBy) this.#call.usage = usageOfAnswer(this.#request, end.reading, price)
        break
      case 'streamed':
        this.#call.usage = usageOfStream(this.#request, end.reader)
        observeThroughput(attempt, this.#call.usage.outputTokens)
        break
      case 'abandoned':
        pass.abandon()
        if (end.reader && hasProduced(end.reader)) this.#call.usage = usageOfStream(this.#request, end.reader)
        return
      case 'failed':
        if (end.failure.blame) state.circuit.failLate(pass)
        if (end.reader) this.#call.usage = usageOfStream(this.#request, end.reader)
        return
    }
    if (attempt.firstByteMs !== null) state.observeFirstByte(attempt.firstByteMs)
  }

  /** An answer whose id could not be noted is not given, and not charged. */
  #keep(keeping: AnswerKeeping, end: LastEnd): Promise<void> | undefined {
    if (end.kind !== 'answer' && end.kind !== 'streamed') return undefined
    const { keptId } = end.kind === 'answer' ? end.reading : end.reader
    return keeping.beforeEnd(keptId)?.catch((error: unknown) => {
      if (end.kind === 'answer') this.#call.usage = null
      throw error
    })
  }

  /** Makes durable what has to be. Undefined where that is nothing, so that the usual path awaits nothing. */
  #settle(end: LastEnd): Promise<void> | undefined {
    return this.#call.settle(this.#ending(end))?.catch((error: unknown) => {
      this.#keepUnsent(end)
      throw error
    })
  }

  #ending(end: LastEnd): CallEnding {
    const unsent = end.kind === 'answer' ? end.body : end.kind === 'streamed' ? end.tail : null
    return { outcome: this.#outcome(end), unsent }
  }

  #outcome(end: LastEnd): CallOutcome {
    if (end.kind === 'failed') return { status: 200, errorCode: end.failure.code, finish: 'interrupted' }
    if (this.#call.left) return { status: 499, errorCode: 'client_closed_request', finish: 'interrupted' }
    return { status: 200, errorCode: null, finish: 'completed' }
  }

  /** What was produced and is not sent belongs to the body that an Idempotency-Key keeps. */
  #keepUnsent(end: LastEnd): void {
    if (end.kind === 'answer') this.#call.idempotency?.keep(end.body)
    else if (end.kind === 'streamed') this.#call.idempotency?.keep(end.tail)
  }

  /** Hands over the last bytes; what has to be durable is by now. */
  #finish(end: LastEnd): void {
    if (end.kind === 'failed') throw new GatewayError(end.failure.code, { message: BROKEN_OFF })
    if (end.kind === 'abandoned') return
    if (this.#call.left) {
      this.#keepUnsent(end)
      return
    }
    if (end.kind === 'streamed') {
      this.#res.end(end.tail)
      return
    }
    writeAnswer(this.#res, end.body)
  }
}

function longestTotal(candidates: readonly Candidate[]): number {
  let longest = 0
  for (const { line } of candidates) longest = Math.max(longest, line.timeouts.totalMs)
  return longest
}

function hasProduced({ substance }: StreamReader): boolean {
  return substance === 'output' || substance === 'refusal'
}

function observeThroughput(attempt: Attempt, outputTokens: number): void {
  const streamedMs = attempt.durationMs - (attempt.firstByteMs ?? 0)
  if (streamedMs > 0 && outputTokens > 0)
    attempt.candidate.state.observeThroughput((outputTokens * 1000) / streamedMs)
}
