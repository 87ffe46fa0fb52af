import type { IncomingHttpHeaders, ServerResponse } from 'node:http'
import type { Call, CallRequest, DisconnectTrace, RoutingTrace } from '../call/index.ts'
import { GatewayError } from '../errors/index.ts'
import { Attempt, type AttemptEnd } from './attempt.ts'
import { CallerStream } from './caller-stream.ts'
import type { Candidate } from './candidate.ts'
import type { CircuitPass } from './circuit.ts'
import { circuitDetail, emptied } from './filters.ts'
import { usageOfPart, usageOfWhole } from './metering.ts'
import type { Failure } from './outcome.ts'
import type { RetryBudget } from './retry-budget.ts'
import { upstreamRequest } from './upstream-request.ts'
import { verdict } from './verdict.ts'

/** What happens to a running attempt when its caller leaves. */
export interface DisconnectPolicy {
  readonly onDisconnect: 'abort' | 'drain'
  readonly drainMs: number
}

/** What a routed call works with. */
export interface RoutedCallOptions extends DisconnectPolicy {
  readonly maxAttempts: number
  readonly budget: RetryBudget
}

/** One call on its way over the candidates: attempts until one answers, then the answer to the caller. */
export class RoutedCall {
  readonly #call: Call
  readonly #request: CallRequest
  readonly #trace: RoutingTrace
  readonly #inbound: IncomingHttpHeaders
  readonly #res: ServerResponse
  readonly #options: RoutedCallOptions
  readonly #failures: Failure[] = []
  #pass: CircuitPass | undefined

  constructor(call: Call, inbound: IncomingHttpHeaders, res: ServerResponse, options: RoutedCallOptions) {
    this.#call = call
    this.#request = call.request as CallRequest
    this.#trace = call.routing as RoutingTrace
    this.#inbound = inbound
    this.#res = res
    this.#options = options
  }

  /**
   * Tries the candidates in turn and writes the answer.
   *
   * @throws {GatewayError} the verdict; after the first byte, what the stream has to end with.
   */
  async run(candidates: readonly Candidate[]): Promise<void> {
    const totals = candidates.map(({ line }) => line.timeouts.totalMs)
    const deadline = performance.now() + Math.max(...totals)
    for (const candidate of candidates) {
      if (this.#call.left) return
      if (!this.#mayStart(candidate, deadline)) continue
      const over = await this.#attempt(candidate, deadline)
      if (over) return
    }
    if (this.#failures.length > 0) throw verdict(this.#failures, this.#request.body)
    throw emptied(
      this.#trace.eliminated.at(-1)?.reason === 'resting' ? 'resting' : 'circuit_open',
      candidates,
    )
  }

  /** Whether an attempt on this candidate may start now; takes its circuit's pass and, for a retry, the budget. */
  #mayStart({ line, state }: Candidate, deadline: number): boolean {
    const retry = this.#failures.length > 0
    if (retry && (this.#failures.length >= this.#options.maxAttempts || this.#trace.retryBudgetSpent))
      return false
    if (retry && performance.now() >= deadline) return false
    if (state.restMs > 0) {
      this.#trace.eliminated.push({ line: line.id, reason: 'resting', detail: 'answered 429 a moment ago' })
      return false
    }
    if (!state.circuit.admits) {
      this.#trace.eliminated.push({
        line: line.id,
        reason: 'circuit_open',
        detail: circuitDetail(state.circuit.state),
      })
      return false
    }
    if (retry && !this.#options.budget.takeRetry()) {
      this.#trace.retryBudgetSpent = true
      return false
    }
    this.#pass = state.circuit.enter()
    return this.#pass !== undefined
  }

  /** One attempt; true when the call is over with it. */
  async #attempt(candidate: Candidate, deadline: number): Promise<boolean> {
    const pass = this.#pass as CircuitPass
    const upstream = upstreamRequest(candidate, this.#request, this.#inbound)
    const stream = new CallerStream(this.#res, () => pass.success())
    const attempt = new Attempt(candidate, this.#request, upstream, deadline, stream)
    stream.attach(attempt)
    const watch = new DisconnectWatch(this.#call, attempt, stream, this.#options)
    const end = await attempt.run()
    watch.stop(end)
    this.#trace.attempts.push(attempt.record)
    if (watch.trace) this.#trace.disconnect = watch.trace
    switch (end.kind) {
      case 'answer':
        pass.success()
        this.#observe(attempt)
        this.#call.usage = usageOfWhole(this.#request, end.reading.usage, end.reading.estimateOutput)
        await this.#finish(end.body)
        return true
      case 'streamed':
        this.#observe(attempt)
        this.#call.usage = usageOfWhole(this.#request, end.reader.usage, () => end.reader.estimatedOutput)
        observeThroughput(attempt, this.#call.usage.outputTokens)
        await this.#finish(end.tail)
        return true
      case 'abandoned':
        pass.abandon()
        this.#meterPart(end)
        await this.#call.settle()
        return true
      case 'failed':
        return this.#fail(candidate, pass, end)
    }
  }

  async #fail(
    candidate: Candidate,
    pass: CircuitPass,
    end: AttemptEnd & { kind: 'failed' },
  ): Promise<boolean> {
    const { failure, committed } = end
    if (failure.retryAfterMs !== undefined) candidate.state.rest(failure.retryAfterMs)
    if (committed) {
      if (failure.blame) candidate.state.circuit.failLate(pass)
      this.#meterPart(end)
      await this.#call.settle()
      throw new GatewayError(failure.code)
    }
    if (failure.blame) pass.failure()
    else pass.abandon()
    this.#failures.push(failure)
    if (!failure.retryable) throw verdict(this.#failures, this.#request.body)
    return false
  }

  /** Hands over the last bytes, once what has to be durable is. */
  async #finish(tail: string | Buffer): Promise<void> {
    const settling = this.#call.settle()
    if (settling) await settling
    if (this.#call.left) return
    if (!this.#res.headersSent) {
      this.#res.writeHead(200, {
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(tail),
      })
    }
    this.#res.end(tail)
  }

  #meterPart(end: AttemptEnd & { kind: 'failed' | 'abandoned' }): void {
    if (end.reader?.substance === 'output' || end.reader?.substance === 'refusal') {
      this.#call.usage = usageOfPart(this.#request, end.reader)
    }
  }

  #observe(attempt: Attempt): void {
    if (attempt.firstByteMs !== null) attempt.candidate.state.observeFirstByte(attempt.firstByteMs)
  }
}

function observeThroughput(attempt: Attempt, outputTokens: number): void {
  const streamedMs = attempt.durationMs - (attempt.firstByteMs ?? 0)
  if (streamedMs > 0 && outputTokens > 0)
    attempt.candidate.state.observeThroughput((outputTokens * 1000) / streamedMs)
}

/** Acts when the caller leaves during an attempt: ends it at once, or reads on for a while without the caller. */
class DisconnectWatch {
  readonly #policy: DisconnectPolicy
  readonly #attempt: Attempt
  readonly #stream: CallerStream
  readonly #remove: () => void
  #left = false
  #timer: NodeJS.Timeout | undefined
  trace: DisconnectTrace | undefined

  constructor(call: Call, attempt: Attempt, stream: CallerStream, policy: DisconnectPolicy) {
    this.#policy = policy
    this.#attempt = attempt
    this.#stream = stream
    this.#remove = call.onLeave(() => this.#leave())
  }

  /** The attempt is over. */
  stop(end: AttemptEnd): void {
    this.#remove()
    clearTimeout(this.#timer)
    if (!this.#left) return
    const { onDisconnect: policy } = this.#policy
    if (end.kind === 'failed') this.trace = { policy, ended: 'upstream_failed' }
    else if (end.kind !== 'abandoned') this.trace = { policy, ended: 'drained' }
    else this.trace = { policy, ended: policy === 'drain' ? 'drain_timeout' : 'aborted' }
  }

  #leave(): void {
    this.#left = true
    this.#stream.discard()
    if (this.#policy.onDisconnect === 'abort') this.#attempt.abandon()
    else this.#timer = setTimeout(() => this.#attempt.abandon(), this.#policy.drainMs)
  }
}
