import type {
  AttemptNote,
  AttemptOutcome,
  Call,
  CallRequest,
  ChosenLine,
  LineSender,
  OpenCall,
  RoutingTrace,
} from '../core/call/index.ts'
import type { Catalog, Line } from '../core/catalog/index.ts'
import type { ErrorCode, GatewayError } from '../core/errors/index.ts'
import { checkOptions } from '../core/options/index.ts'
import { type AttemptEnd, type Failure, malformed } from './attempt/failure.ts'
import { type LineReply, sendToLine } from './attempt/line-send.ts'
import { pathOn } from './attempt/upstream-path.ts'
import { lineHeaders } from './attempt/upstream-request.ts'
import { CandidateTable } from './candidates/candidate.ts'
import {
  ROUTING_RULES,
  type RoutingOptions,
  type RoutingSettings,
  routingSettings,
} from './candidates/routing-options.ts'
import { LineRegistry } from './lines/line-registry.ts'
import type { Transport } from './lines/upstream-pool.ts'
import { newTrace, tryCandidates } from './try-candidates.ts'

/** The outcome of a request that must not be sent twice. */
export interface SubmitOutcome {
  /**
   * - `accepted`: the line has accepted it.
   * - `refused`: the line has not accepted it. `next` says whether another line may be tried.
   * - `unknown`: the line may have accepted it, so it must not be sent again.
   */
  readonly kind: 'accepted' | 'refused' | 'unknown'
  readonly code?: ErrorCode
  readonly next?: boolean
  readonly detail?: string | null
  readonly param?: string | undefined
  readonly retryAfterMs?: number | undefined
}

/** A request that goes to one line after another until one has accepted it. */
export interface Submission<Outcome extends SubmitOutcome> {
  /** Returns why the line cannot take the request at all; undefined if it can. */
  unfit(line: Line): GatewayError | undefined
  /**
   * Sends the request to a line.
   *
   * @param send sends requests to that line.
   * @param ahead all lines that may be tried, in their order.
   * @throws an error that ends the call: no other line is tried.
   */
  sendTo(chosen: ChosenLine, send: LineSender, ahead: readonly ChosenLine[]): Promise<Outcome>
}

/** The line that has accepted the request, or may have. */
export interface Submitted<Outcome> {
  readonly chosen: ChosenLine
  readonly outcome: Outcome
}

/**
 * Gives access to the lines for requests that must not be sent twice, and for requests to one particular line.
 * Filters, order, circuits, rests and the trace are those of {@link route}.
 *
 * @throws TypeError at construction when an option is unusable.
 * @example
 * const access = new LineAccess({ catalog, lines, ...config.routing })
 */
export class LineAccess {
  readonly #catalog: (call?: Call) => Catalog
  #options: RoutingSettings
  readonly #registry: LineRegistry
  readonly #table: CandidateTable

  constructor(options: RoutingOptions) {
    checkRouting(options)
    const { catalog, ...settings } = routingSettings(options)
    this.#options = settings
    this.#catalog = catalog
    this.#registry = options.lines ?? new LineRegistry()
    this.#table = new CandidateTable(this.#registry)
  }

  /**
   * Changes the strategy and the number of attempts for later requests. An option that is left out gets its default.
   * Requests under way are not affected.
   *
   * @throws TypeError when an option is unusable; nothing is changed then.
   * @example
   * access.reroute(next.routing) // a config that takes the place of another
   */
  reroute({ strategy, maxAttempts }: Pick<RoutingOptions, 'strategy' | 'maxAttempts'>): void {
    const options = {
      catalog: this.#catalog,
      region: this.#options.region,
      ...(strategy !== undefined && { strategy }),
      ...(maxAttempts !== undefined && { maxAttempts }),
    }
    checkRouting(options)
    this.#options = routingSettings(options)
  }

  /** Returns a line by its id; undefined if the catalogue has none. */
  line(id: string): Line | undefined {
    return this.#catalog().lines.find((line) => line.id === id)
  }

  /**
   * Returns a function that sends requests to one line.
   *
   * @param note is called with the record of each attempt, before its answer is returned.
   */
  senderTo(line: Line, note?: AttemptNote): LineSender {
    const target = { line, state: this.#registry.stateOf(line), upstreamModel: null }
    return async (request, signal) => {
      const { result, record } = await sendToLine(target, request, signal)
      note?.(record(result.kind === 'answered' ? 'completed' : result.failure.code))
      return result
    }
  }

  /** Returns the trace of a call that can only go to one line. */
  pinnedTrace(): RoutingTrace {
    return newTrace({ region: this.#options.region, strategyName: 'pinned' })
  }

  /** Returns the URL of a path on a line and the headers that the line requires. */
  address(line: Line, path: string): { readonly url: string; readonly headers: readonly string[] } {
    return { url: line.origin + pathOn(line, path), headers: lineHeaders(line, { accept: '*/*' }) }
  }

  /** Returns the transport that sends requests to a line, with the credentials that `address` cannot return. */
  transportTo(line: Line): Transport {
    return this.#registry.stateOf(line).transport
  }

  /**
   * Sends a request to the candidate lines of a call, one after another, until one has accepted it, or may have.
   * Writes the trace of the call.
   *
   * @throws {GatewayError} the verdict if no line has accepted it.
   */
  async submit<Outcome extends SubmitOutcome>(
    call: OpenCall,
    submission: Submission<Outcome>,
  ): Promise<Submitted<Outcome>> {
    const request = call.request as CallRequest
    call.routing = newTrace(this.#options)
    const list = this.#table.of(this.#catalog(call), request.model, request.operation)
    const unfit = (line: Line): GatewayError | undefined => submission.unfit(line)
    const decided = await tryCandidates(
      call,
      list,
      this.#options,
      { request, unfit },
      async (candidate, { ordered }) => {
        let reply: LineReply | undefined
        const send: LineSender = async (request, signal) => {
          // Earlier attempts do not shorten its clocks: a request that was sent may have been accepted.
          reply = undefined
          reply = await sendToLine(candidate, request, signal)
          return reply.result
        }
        const outcome = await submission.sendTo(candidate, send, ordered)
        return {
          ...endOf(outcome, reply?.failure),
          record: reply?.record(traceOutcome(outcome)),
          outcome,
        }
      },
    )
    if (!decided) throw call.refuse('client_closed_request')
    return { chosen: decided.candidate, outcome: decided.result.outcome }
  }
}

/**
 * Converts an outcome for `tryCandidates`. After an unknown one no other line is tried and no verdict given.
 *
 * @param failed how the exchange failed; undefined if the answer itself was at fault.
 */
function endOf(outcome: SubmitOutcome, failed: Failure | undefined): AttemptEnd {
  if (outcome.kind === 'accepted') return { kind: 'served' }
  const elsewhere = outcome.next === true
  const code = codeOf(outcome)
  const { fault, refusedWithoutWork = false } = failed ?? malformed('')
  const failure: Failure = {
    code,
    retryable: elsewhere,
    fault: code === 'internal_error' ? null : fault,
    refusedWithoutWork,
    detail: outcome.detail ?? null,
    retryAfterMs: outcome.retryAfterMs,
    param: outcome.param,
  }
  return { kind: 'failed', failure, committed: outcome.kind === 'unknown', elsewhere, lineFault: false }
}

function codeOf({ code }: SubmitOutcome): ErrorCode {
  return code ?? 'upstream_error'
}

function traceOutcome(outcome: SubmitOutcome): AttemptOutcome {
  return outcome.kind === 'accepted' ? 'completed' : codeOf(outcome)
}

/** The `routing` of a config has members for others, too. */
function checkRouting({ catalog, strategy, maxAttempts, region, lines }: RoutingOptions): void {
  checkOptions('LineAccess', { catalog, strategy, maxAttempts, region, lines }, ROUTING_RULES)
}
