import type { AttemptRecord } from '../../../core/call/index.ts'
import type { Line } from '../../../core/catalog/index.ts'
import { type ErrorCode, GatewayError } from '../../../core/errors/index.ts'
import { RefusedAddress } from '../lines/download.ts'

/** One download, for the trace; redirects are part of it. */
export class DownloadAttempt {
  readonly #line: Line
  readonly #begunAt = Date.now()
  readonly #startedAt = performance.now()
  #status: number | null = null
  #firstByteMs: number | null = null

  constructor(line: Line) {
    this.#line = line
  }

  begun(status: number): void {
    this.#status = status
    this.#firstByteMs = Math.round(performance.now() - this.#startedAt)
  }

  record(outcome: AttemptRecord['outcome'], error?: unknown): AttemptRecord {
    const { id: line, provider, protocol } = this.#line
    return {
      line,
      provider,
      protocol,
      startedAt: this.#begunAt,
      upstreamModel: null,
      upstreamStatus: this.#status,
      outcome,
      timeoutPhase: null,
      detail: reasonOf(error),
      connectMs: null,
      firstByteMs: this.#firstByteMs,
      durationMs: Math.round(performance.now() - this.#startedAt),
      skipped: 0,
    }
  }
}

const TIMEOUTS: ReadonlySet<unknown> = new Set([
  'UND_ERR_CONNECT_TIMEOUT',
  'UND_ERR_HEADERS_TIMEOUT',
  'UND_ERR_BODY_TIMEOUT',
])

/** The code of a call whose download failed so. */
export function codeFor(error: unknown): ErrorCode {
  if (error instanceof GatewayError) return error.code
  return TIMEOUTS.has(errnoOf(error)) ? 'upstream_timeout' : 'upstream_error'
}

function errnoOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined
}

/** For the operator. The address stays out of it: some are good without a key. */
export function reasonOf(error: unknown): string | null {
  if (error instanceof RefusedAddress) return error.message
  if (error instanceof GatewayError || !(error instanceof Error)) return null
  return String(errnoOf(error) ?? error.name)
}
