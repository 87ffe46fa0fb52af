import type { IncomingHttpHeaders } from 'node:http'
import type { Dispatcher } from 'undici'
import type { AttemptOutcome, AttemptRecord } from '../call/index.ts'
import { AttemptClocks } from './attempt-clocks.ts'
import type { Candidate } from './candidate.ts'
import { connectionFailure, type Failure, malformed, timedOut } from './outcome.ts'
import { BodyCollector } from './plain-answer.ts'
import { traceDetail } from './trace-detail.ts'
import type { ConnectionAware, CountingConnection } from './upstream-pool.ts'
import { lineHeaders } from './upstream-request.ts'

/** What is sent to a line. Its credentials and its own headers are added on the way. */
export interface LineRequest {
  readonly method: 'GET' | 'POST' | 'DELETE'
  /** Path and query behind the line's base URL, such as `/videos`. */
  readonly path: string
  readonly body?: LineRequestBody | undefined
}

/** A body and its media type. */
export interface LineRequestBody {
  readonly type: string
  readonly bytes: Buffer
}

/** A whole answer of a line, whatever its status. */
export interface LineAnswer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
}

/** How an exchange ended. `sent`: whether the line may have seen the request. */
export type ExchangeEnd =
  | ({ readonly kind: 'answered' } & LineAnswer)
  | { readonly kind: 'failed'; readonly failure: Failure; readonly sent: boolean }

/** Answers about tasks are short; past this one is taken for broken. */
const LONGEST_ANSWER = 4 * 1024 * 1024
const OVER = new Error('the exchange is over')

/**
 * One request to one line and its whole answer, under the line's four clocks. It is sent once, whatever becomes of it:
 * always over a connection of its own, so that no kept-alive one that the other side is just closing can leave it
 * unknown whether the request arrived.
 */
export class LineExchange implements ConnectionAware {
  connection: CountingConnection | undefined
  readonly #candidate: Pick<Candidate, 'line' | 'state' | 'upstreamModel'>
  readonly #request: LineRequest
  readonly #clocks: AttemptClocks
  readonly #body = new BodyCollector(LONGEST_ANSWER)
  readonly #startedAt = performance.now()
  #onEnd: (end: ExchangeEnd) => void = () => {}
  #over = false
  #controller: Dispatcher.DispatchController | undefined
  #status: number | null = null
  #headers: IncomingHttpHeaders = {}
  #connectMs: number | null = null
  #firstByteMs: number | null = null
  #durationMs = 0

  /** @param deadline when it ends at the latest, on the monotonic clock. */
  constructor(
    candidate: Pick<Candidate, 'line' | 'state' | 'upstreamModel'>,
    request: LineRequest,
    deadline: number,
  ) {
    this.#candidate = candidate
    this.#request = request
    const { timeouts } = candidate.line
    this.#clocks = new AttemptClocks(timeouts, this.#startedAt, deadline, (phase, afterMs) =>
      this.#fail(timedOut(phase, afterMs), OVER),
    )
  }

  /** Sends the request. Resolves once, never rejects. */
  run(): Promise<ExchangeEnd> {
    const { line, state } = this.#candidate
    const { method, path, body } = this.#request
    return new Promise((resolve) => {
      this.#onEnd = resolve
      this.#clocks.start()
      state.inFlight++
      const options: Dispatcher.DispatchOptions = {
        method,
        path: line.basePath + path,
        headers: lineHeaders(line, {
          accept: 'application/json',
          ...(body && { 'content-type': body.type }),
        }),
        body: body?.bytes ?? null,
        idempotent: false,
      }
      state.pool.dispatchFresh(options, this)
    })
  }

  /** What the trace keeps of it, with what the exchange came to. */
  record(outcome: AttemptOutcome, failure?: Failure): AttemptRecord {
    const { line, upstreamModel } = this.#candidate
    return {
      line: line.id,
      upstreamModel,
      upstreamStatus: this.#status,
      outcome,
      timeoutPhase: failure?.timeoutPhase ?? null,
      detail: failure?.detail ? traceDetail(failure.detail, line) : null,
      connectMs: rounded(this.#connectMs),
      firstByteMs: rounded(this.#firstByteMs),
      durationMs: Math.round(this.#durationMs),
    }
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    if (this.#over) {
      controller.abort(OVER)
      return
    }
    this.#controller = controller
    this.#connectMs = performance.now() - this.#startedAt
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
    this.#conclude({ kind: 'answered', status, headers, body })
  }

  onResponseError(_controller: Dispatcher.DispatchController | null, error: Error): void {
    if (!this.#over) this.#fail(connectionFailure(error))
  }

  #fail(failure: Failure, cut?: Error): void {
    this.#conclude({ kind: 'failed', failure, sent: this.#controller !== undefined })
    if (cut) this.#controller?.abort(cut)
  }

  #conclude(end: ExchangeEnd): void {
    if (this.#over) return
    this.#over = true
    this.#durationMs = performance.now() - this.#startedAt
    this.#candidate.state.inFlight--
    this.#clocks.stop()
    this.#onEnd(end)
  }
}

function rounded(ms: number | null): number | null {
  return ms === null ? null : Math.round(ms)
}
