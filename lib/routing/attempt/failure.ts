import { closeSync, openSync } from 'node:fs'
import { devNull } from 'node:os'
import type { LineFailure, TimeoutPhase } from '../../core/call/index.ts'
import { redactUpstreamText } from './redact-upstream-text.ts'
import type { UpstreamError } from './upstream-error.ts'

/**
 * The cause of a failure: the line, for all its models, or the model on the line. All other failures are caused by the
 * request, or by neither.
 */
export type Fault = 'line' | 'model'

/** How an attempt failed, and what follows from it. */
export interface Failure extends LineFailure {
  /** The circuit that it counts against; null for none. */
  readonly fault: Fault | null
  /** The upstream's own error, if it sent one. Its message may quote the request. */
  readonly error?: UpstreamError | undefined
  /** Whether the line may lack the endpoint. */
  readonly unknownPath?: boolean
  /** Whether the upstream refused without work: 4xx, 503 or 529. */
  readonly refusedWithoutWork?: boolean
}

/** The failure of an answer that violates its protocol or breaks off. */
export function malformed(detail: string): Failure {
  return { code: 'upstream_error', retryable: true, fault: 'model', detail }
}

/** The failure of an answer whose reader threw `error`. */
export function unreadable(error: unknown): Failure {
  return malformed(faultOf(error))
}

/** Returns the message of an error that a reader of ours threw. Those of `JSON.parse` quote what it read. */
export function faultOf(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error)
  return /\bJSON\b.*(?:position|input)|is not valid JSON/s.test(text)
    ? 'a part of it is not valid JSON'
    : text
}

/** The failure of an attempt one of whose clocks ran out. */
export function timedOut(phase: TimeoutPhase, afterMs: number): Failure {
  const detail = `the ${phase.replace('_', '-')} clock ran out after ${Math.round(afterMs)} ms`
  const fault = phase === 'connect' ? 'line' : 'model'
  return { code: 'upstream_timeout', retryable: true, fault, detail, timeoutPhase: phase }
}

/** Turns a failure after the first output into a broken answer, whatever error the line sent. */
export function brokenOff(failure: Failure): Failure {
  if (failure.code === 'upstream_timeout') return { ...failure, retryable: false }
  return { ...malformed(failure.detail ?? failure.code), retryable: false, error: failure.error }
}

/** The failure of a request for something that the line does not have, or no longer has. */
export function goneFromLine(): Failure {
  return { code: 'not_found', retryable: false, fault: null, detail: 'the line does not have it' }
}

/** The failure of an answer with status 200 that has no output, and gives no reason for it. */
export function emptyAnswer(): Failure {
  return { code: 'empty_completion', retryable: true, fault: null, detail: 'no output' }
}

/** The failure of an answer with status 200 that moderation stopped before any output. */
export function filteredAnswer(): Failure {
  return { code: 'content_filtered', retryable: false, fault: null, detail: 'stopped by moderation' }
}

/** Why a request could not be sent at all. Its message is ours: it holds no address and no secret. */
export class UnsentError extends Error {
  override readonly name = 'UnsentError'
  /** Whether what was waited for took too long. */
  readonly late: boolean

  constructor(message: string, late = false) {
    super(message)
    this.late = late
  }
}

/** Returns a handler for a package that cannot be loaded: each is an optional one, for lines that need it. */
export function missingPackages(packages: string): (error: unknown) => never {
  return () => {
    throw new UnsentError(`the line needs packages that are not installed: npm install ${packages}`)
  }
}

/** An error of undici, of the operating system (with the call that failed), or of TLS. */
type ConnectionError = Error & { code?: string; syscall?: string }

/** The codes of shortages of this process or its machine, which say nothing about a line. */
const OWN_SHORTAGES = ['EMFILE', 'ENFILE', 'ENOBUFS', 'ENOMEM']

/**
 * The failure of a connection.
 *
 * @param connecting whether it could not be opened, which concerns all models of the line.
 */
export function connectionFailure(error: ConnectionError, connecting: boolean): Failure {
  if (error instanceof UnsentError) {
    const { message: detail } = error
    if (!error.late) return { ...malformed(detail), fault: 'line' }
    return { code: 'upstream_timeout', retryable: true, fault: 'line', detail, timeoutPhase: 'connect' }
  }
  if (error.code === 'UND_ERR_CONNECT_TIMEOUT') {
    const detail = 'connecting took too long'
    return { code: 'upstream_timeout', retryable: true, fault: 'line', detail, timeoutPhase: 'connect' }
  }
  const fault = isOwnShortage(error, connecting) ? null : connecting ? 'line' : 'model'
  return { ...malformed(connectionDetail(error)), fault }
}

/**
 * Whether this process ran out of descriptors or memory. Before a connection was tried, the error may only name a
 * consequence: looking up a name or loading a package needs descriptors, too.
 */
function isOwnShortage({ code, syscall }: ConnectionError, connecting: boolean): boolean {
  if (OWN_SHORTAGES.includes(`${code}`)) return true
  if (!connecting || syscall === 'connect') return false
  try {
    closeSync(openSync(devNull, 'r'))
    return false
  } catch {
    return true
  }
}

/** Drops messages of the system and of TLS, which name the line's address: callers can read their call log. */
function connectionDetail({ code, syscall, message, name }: ConnectionError): string {
  const text = message === '' ? name : message
  if (code === undefined) return redactUpstreamText(text) || name
  if (syscall !== undefined) return `${code}: ${syscall}`
  return code.startsWith('UND_ERR_') || code.startsWith('HPE_') ? `${code}: ${text}` : code
}

/** An attempt that failed, before its answer or during it. */
export interface FailedEnd {
  readonly kind: 'failed'
  readonly failure: Failure
  /** True once the caller has received output, or if the line may have carried out the request. */
  readonly committed: boolean
  /** Whether another line may be tried. */
  readonly elsewhere: boolean
  /** Whether it counts as a failure of the line. */
  readonly lineFault: boolean
}

/** The end of an attempt that failed, after which no other line is tried. */
export function failedEnd(failure: Failure, lineFault = failure.fault !== null): FailedEnd {
  return { kind: 'failed', failure, committed: false, elsewhere: false, lineFault }
}

/** How an attempt ended: `served` with an answer, `abandoned` because nobody waits for it, or `failed`. */
export type AttemptEnd =
  | { readonly kind: 'served' }
  | { readonly kind: 'abandoned'; readonly failure?: Failure | undefined }
  | FailedEnd
