import type { IncomingHttpHeaders } from 'node:http'
import type { Dispatcher } from 'undici'
import type { AttemptOutcome, AttemptRecord, LineRequest, LineResult } from '../../core/call/index.ts'
import type { Candidate } from '../candidates/candidate.ts'
import { isLineFault } from '../lines/recent-attempts.ts'
import type { ConnectionAware, CountingConnection } from '../lines/upstream-pool.ts'
import { AttemptClocks } from './attempt-clocks.ts'
import { connectionFailure, type Failure, failureOfStatus, malformed, timedOut } from './outcome.ts'
import { BodyCollector, parseJson } from './plain-answer.ts'
import { traceDetail } from './trace-detail.ts'
import { lineHeaders } from './upstream-request.ts'

/** Where an exchange goes. */
export type ExchangeTarget = Pick<Candidate, 'line' | 'state'> & {
  /** null where the request names none. */
  readonly upstreamModel: string | null
}

/** Answers about tasks are short; past this one is taken for broken. */
const LONGEST_ANSWER = 4 * 1024 * 1024
const OVER = new Error('the exchange is over')

/**
 * One request to one line and its whole answer, under the line's four clocks. Only what reads is ever sent again, when a
 * kept-alive connection dies under it; all else goes out once, over a connection of its own, so that none that the other
 * side is just closing can leave it unknown whether the request arrived.
 */
export class LineExchange implements ConnectionAware {
  connection: CountingConnection | undefined
  readonly #target: ExchangeTarget
  readonly #request: LineRequest
  readonly #clocks: AttemptClocks
  readonly #body = new BodyCollector(LONGEST_ANSWER)
  readonly #startedAt = performance.now()
  readonly #begunAt = Date.now()
  #onEnd: (end: LineResult) => void = () => {}
  #over = false
  #givenUp = false
  #onReusedConnection = false
  #controller: Dispatcher.DispatchController | undefined
  #status: number | null = null
  #headers: IncomingHttpHeaders = {}
  #connectMs: number | null = null
  #firstByteMs: number | null = null
  #durationMs = 0
  #failure: Failure | undefined

  constructor(target: ExchangeTarget, request: LineRequest) {
    this.#target = target
    this.#request = request
    this.#clocks = new AttemptClocks(target.line.timeouts, this.#startedAt, Infinity, (phase, afterMs) =>
      this.#fail(timedOut(phase, afterMs), OVER),
    )
  }

  /** Sends the request. Resolves once, never rejects; when the signal ends, as if the line had not answered. */
  run(signal: AbortSignal): Promise<LineResult> {
    const { state } = this.#target
    return new Promise((resolve) => {
      const giveUp = (): void => {
        this.#givenUp = true
        this.#fail(givenUpFailure(signal, performance.now() - this.#startedAt), OVER)
      }
      this.#onEnd = (result) => {
        signal.removeEventListener('abort', giveUp)
        resolve(result)
      }
      this.#clocks.start()
      state.inFlight++
      if (signal.aborted) {
        giveUp()
        return
      }
      signal.addEventListener('abort', giveUp)
      if (this.#reads) state.pool.dispatch(this.#options, this)
      else state.pool.dispatchFresh(this.#options, this)
    })
  }

  get #reads(): boolean {
    return this.#request.method === 'GET'
  }

  get #options(): Dispatcher.DispatchOptions {
    const { line } = this.#target
    const { method, path, body } = this.#request
    return {
      method,
      path: line.basePath + path,
      headers: lineHeaders(line, { accept: 'application/json', ...(body && { 'content-type': body.type }) }),
      body: body?.bytes ?? null,
      idempotent: false,
    }
  }

  /** What the trace keeps of it, with what the exchange came to. */
  record(outcome: AttemptOutcome): AttemptRecord {
    const { line, upstreamModel } = this.#target
    const failure = this.#failure
    return {
      line: line.id,
      provider: line.provider,
      startedAt: this.#begunAt,
      protocol: line.protocol,
      upstreamModel,
      upstreamStatus: this.#status,
      outcome,
      timeoutPhase: failure?.timeoutPhase ?? null,
      detail: failure?.detail ? traceDetail(failure.detail, line, this.#request.body?.bytes ?? null) : null,
      connectMs: rounded(this.#connectMs),
      firstByteMs: rounded(this.#firstByteMs),
      durationMs: Math.round(this.#durationMs),
      skipped: 0,
    }
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    if (this.#over) {
      controller.abort(OVER)
      return
    }
    this.#controller = controller
    if (this.connection) this.#onReusedConnection = this.connection.carried++ > 0
    this.#connectMs ??= performance.now() - this.#startedAt
    this.#clocks.connected()
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: IncomingHttpHeaders,
  ): void {
    if (this.#over || status < 200) return
    this.#status = status
    this.#headers = headers
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#over) return
    const now = performance.now()
    this.#firstByteMs ??= now - this.#startedAt
    this.#clocks.progress(now)
    if (!this.#body.push(chunk)) this.#fail(malformed('the answer is too long'), OVER)
  }

  onResponseEnd(): void {
    if (this.#over) return
    const [status, headers, body] = [this.#status ?? 0, this.#headers, this.#body.take()]
    if (status < 300) {
      this.#conclude({ kind: 'answered', status, headers, body })
      return
    }
    this.#failure = failureOfStatus(status, headers, parseJson(body.toString()))
    this.#conclude({ kind: 'refused', status, failure: this.#failure, body })
  }

  onResponseError(_controller: Dispatcher.DispatchController | null, error: Error): void {
    if (!this.#over && this.#reads && this.#onReusedConnection && this.#status === null) {
      this.#onReusedConnection = false
      this.#clocks.reconnecting()
      this.#target.state.pool.dispatchFresh(this.#options, this)
      return
    }
    this.#fail(connectionFailure(error))
  }

  #fail(failure: Failure, cut?: Error): void {
    if (this.#over) return
    this.#failure = failure
    this.#conclude({ kind: 'failed', failure, sent: this.#controller !== undefined })
    if (cut) this.#controller?.abort(cut)
  }

  #conclude(end: LineResult): void {
    this.#over = true
    this.#durationMs = performance.now() - this.#startedAt
    this.#target.state.inFlight--
    const failed = end.kind === 'failed' || isLineFault(this.#status)
    if (!this.#givenUp) this.#target.state.recent.count(failed)
    this.#clocks.stop()
    this.#onEnd(end)
  }
}

function rounded(ms: number | null): number | null {
  return ms === null ? null : Math.round(ms)
}

/** By a clock of those who wait, or as they are not there any more. */
function givenUpFailure({ reason }: AbortSignal, afterMs: number): Failure {
  const isLate = reason instanceof DOMException && reason.name === 'TimeoutError'
  return isLate ? timedOut('total', afterMs) : malformed('nobody waits for the answer any more')
}
