/** Why the answer of a request that ran before cannot be returned. */
export type ReplayFault =
  /** The call log has no such call, or no longer has it. */
  | 'not_found'
  /** The call log could not be read. */
  | 'unreadable'
  /** The call log has the call without its answer. */
  | 'not_kept'
  /** The answer was longer than the call log stores. */
  | 'truncated'
  /** The first run broke off. What it produced is in `partialBody` and is billed. */
  | 'incomplete'

/**
 * Thrown if a request ran and was billed under its `Idempotency-Key`, but its answer is not available. If you send it again
 * with a new key, it runs and is billed a second time.
 */
export class ReplayError extends Error {
  override readonly name = 'ReplayError'
  readonly fault: ReplayFault
  /** The request id of the call that ran, for the call log. */
  readonly originalRequestId: string
  /** The part of the answer that is available. */
  readonly partialBody: string | null

  constructor(fault: ReplayFault, originalRequestId: string, options: ReplayErrorOptions = {}) {
    super(
      `The request ran as ${originalRequestId}, but ${REASONS[fault]}. With a new Idempotency-Key it runs and is billed again.`,
      { cause: options.cause },
    )
    this.fault = fault
    this.originalRequestId = originalRequestId
    this.partialBody = options.partialBody ?? null
  }
}

interface ReplayErrorOptions {
  readonly partialBody?: string | null
  readonly cause?: unknown
}

const REASONS: Readonly<Record<ReplayFault, string>> = {
  not_found: 'the call log does not have it, or no longer has it',
  unreadable: 'its answer could not be read from the call log',
  not_kept: 'the call log did not store its answer',
  truncated: 'its answer was too long to be stored completely',
  incomplete: 'its answer broke off',
}

/**
 * Returns the answer of a call from its entry in the call log.
 *
 * @throws {ReplayError} if the entry does not have the complete answer.
 */
export function answerFrom(entry: unknown, originalRequestId: string): Response {
  const { response_body: body, response_body_truncated: isCut, ...call } = readEntry(entry)
  if (typeof body !== 'string') throw new ReplayError('not_kept', originalRequestId)
  const fault = isCut === true || CUT.test(body) ? 'truncated' : faultOf(body, call)
  if (fault) throw new ReplayError(fault, originalRequestId, { partialBody: body })
  return new Response(body, {
    status: 200,
    headers: {
      'content-type': call.stream === true ? 'text/event-stream; charset=utf-8' : 'application/json',
      'x-request-id': originalRequestId,
      'request-id': originalRequestId,
      'idempotent-replayed': 'true',
    },
  })
}

/** The end of a body that the call log has cut. */
const CUT = /\n\[cut after \d+ bytes\]$/
/** The last event of a complete stream, in each protocol. */
const LAST_EVENT = /^(?:data: ?\[DONE\]|event: ?(?:message_stop|response\.completed))\r?$/m

/** Finds a body that broke off: it is not JSON, or a stream without its last event. */
function faultOf(body: string, { stream, outcome }: CallEntry): ReplayFault | undefined {
  if (stream === true) return outcome === 'completed' || LAST_EVENT.test(body) ? undefined : 'incomplete'
  try {
    JSON.parse(body)
    return undefined
  } catch {
    return outcome === 'completed' ? 'not_kept' : 'incomplete'
  }
}

/** The members of a call log entry that are read here. */
interface CallEntry {
  readonly stream?: unknown
  readonly outcome?: unknown
  readonly response_body?: unknown
  readonly response_body_truncated?: unknown
}

function readEntry(entry: unknown): CallEntry {
  return typeof entry === 'object' && entry !== null ? entry : {}
}

/** Returns the URL of a call log entry at the gateway of a request URL, below its mount path. */
export function callLogUrl(requestUrl: string, requestId: string): string {
  const { origin, pathname } = new URL(requestUrl)
  const [, mount = ''] = /^(.*?)\/(?:v1|api\/v3)(?:\/|$)/.exec(pathname) ?? []
  return `${origin}${mount}/v1/calls/${encodeURIComponent(requestId)}`
}
