import type { OpenCall, ServedBy } from '../../core/call/index.ts'
import { GatewayError } from '../../core/errors/index.ts'
import type { ProviderConstraint } from '../../core/operations/index.ts'
import type { CheckedBody } from './body-checks/body.ts'
import type { OwnedRequest } from './owned/owned-request.ts'

/** The price of a successful answer, and what it costs the operator. */
export type ForwardTerms = Omit<ServedBy, 'line'>

/** The parts of a forwarded request that its caller does not set. */
export interface Forwarding {
  /** The path below a line's base URL, with the query. */
  readonly path: string
  /** Headers that replace those of the gateway with the same name. */
  readonly headers: Readonly<Record<string, string>>
  /** The price of a successful answer, and what it costs the operator; null if no usage is recorded. */
  readonly terms: ForwardTerms | null
  /** The caller's demands on the lines. */
  readonly constraint?: ProviderConstraint | undefined
  /** Ends the call before its answer has ended. */
  readonly aborter: CallAborter
  /** The body to send, once it was checked. Absent: the caller's, as it comes. */
  readonly body?: CheckedBody | undefined
  /** Returns the refusal of an answer with a credential of the upstream. Absent: such answers are passed on. */
  readonly withhold?: (() => GatewayError) | undefined
  /** Set if the request can only use what its account owns. */
  readonly owned?: OwnedRequest | undefined
}

/** Ends a call before its answer has ended: with its key, when its time is up, or when money is lacking. */
export class CallAborter {
  readonly #controller = new AbortController()
  readonly #total: NodeJS.Timeout

  /** @param totalMs how long the call may take. */
  constructor(call: OpenCall, totalMs: number) {
    this.#total = setTimeout(() => this.end(tooLong()), totalMs).unref()
    call.keyWatch?.follow(call, this.end)
  }

  /** Aborted when the call must end. Its reason is the error that says why. */
  get signal(): AbortSignal {
    return this.#controller.signal
  }

  readonly end = (error: GatewayError): void => {
    this.#controller.abort(error)
  }

  /** Stops the clock. */
  close(): void {
    clearTimeout(this.#total)
  }
}

function tooLong(): GatewayError {
  return new GatewayError('upstream_timeout', { message: 'The call took longer than this path allows.' })
}
