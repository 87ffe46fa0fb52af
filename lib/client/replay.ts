/** Why the answer to a request that has run before cannot be handed over. */
export type ReplayFault =
  /** The call log has no such call, or has it no more. */
  | 'not_found'
  /** The call log could not be read. */
  | 'unreadable'
  /** The call log has the call without its answer. */
  | 'not_kept'
  /** The answer was longer than what is kept. */
  | 'truncated'
  /** The first run broke off; what was produced is in `partialBody`, and is billed. */
  | 'incomplete'

/**
 * A request has run, and been billed, under its `Idempotency-Key`, and its answer cannot be had. Sending it once more under
 * a new key would run and bill it a second time.
 */
export class ReplayError extends Error {
  override readonly name = 'ReplayError'
  readonly fault: ReplayFault
  /** Of the call that has run: it can be looked up in the call log by this. */
  readonly originalRequestId: string
  /** What is kept of the answer. */
  readonly partialBody: string | null

  constructor(fault: ReplayFault, originalRequestId: string, options: ReplayErrorOptions = {}) {
    super(`The request has run as ${originalRequestId}, and ${WHY[fault]}.`, { cause: options.cause })
    this.fault = fault
    this.originalRequestId = originalRequestId
    this.partialBody = options.partialBody ?? null
  }
}

interface ReplayErrorOptions {
  readonly partialBody?: string | null
  readonly cause?: unknown
}

const WHY: Readonly<Record<ReplayFault, string>> = {
  not_found: 'the call log does not have it, or has it no more',
  unreadable: 'its answer could not be read from the call log',
  not_kept: 'the call log has not kept its answer',
  truncated: 'its answer was too long to be kept whole',
  incomplete: 'its answer broke off',
}

/**
 * The answer of a call, made of its entry in the call log.
 *
 * @throws {ReplayError} when the entry does not have all of it.
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

/** How a body ends that was cut at the most that is kept. */
const CUT = /\n\[cut after \d+ bytes\]$/
/** The regular last event of a stream, of either protocol. */
const LAST_EVENT = /^(?:data: ?\[DONE\]|event: ?(?:message_stop|response\.completed))\r?$/m

/** What was cut short is no JSON, and a stream that was has not its last event. */
function faultOf(body: string, { stream, outcome }: CallEntry): ReplayFault | undefined {
  if (stream === true) return outcome === 'completed' || LAST_EVENT.test(body) ? undefined : 'incomplete'
  try {
    JSON.parse(body)
    return undefined
  } catch {
    return outcome === 'completed' ? 'not_kept' : 'incomplete'
  }
}

/** What is read of an entry of the call log. */
interface CallEntry {
  readonly stream?: unknown
  readonly outcome?: unknown
  readonly response_body?: unknown
  readonly response_body_truncated?: unknown
}

function readEntry(entry: unknown): CallEntry {
  return typeof entry === 'object' && entry !== null ? entry : {}
}

/** Where the gateway that a request was sent to has the entry of a call, wherever it is mounted. */
export function callLogUrl(requestUrl: string, requestId: string): string {
  const { origin, pathname } = new URL(requestUrl)
  const [, mount = ''] = /^(.*?)\/(?:v1|api\/v3)(?:\/|$)/.exec(pathname) ?? []
  return `${origin}${mount}/v1/calls/${encodeURIComponent(requestId)}`
}
