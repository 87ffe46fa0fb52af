import type {
  AttemptNote,
  AttemptOutcome,
  AttemptRecord,
  Call,
  CallRequest,
  ChosenLine,
  LineSender,
  RoutingTrace,
} from '../core/call/index.ts'
import type { Catalog, Line } from '../core/catalog/index.ts'
import type { ErrorCode, GatewayError } from '../core/errors/index.ts'
import type { ExchangeEnd } from './attempt/exchange.ts'
import { LineSend } from './attempt/line-send.ts'
import type { Failure } from './attempt/outcome.ts'
import { lineHeaders } from './attempt/upstream-request.ts'
import { type Candidate, CandidateTable } from './candidates/candidate.ts'
import { type RoutingOptions, validateRouting } from './candidates/routing-options.ts'
import type { CircuitPass } from './lines/circuit.ts'
import { LineRegistry } from './lines/line-state.ts'
import { type AttemptPolicy, newTrace, tryCandidates } from './try-candidates.ts'

/** What became of a request that must not be sent twice. */
export interface TurnOutcome {
  /**
   * - `taken`: the line has it.
   * - `refused`: it surely has not. `next`: another line may be tried.
   * - `unknown`: nobody knows, so that it is not to be sent anywhere again.
   */
  readonly kind: 'taken' | 'refused' | 'unknown'
  readonly code?: ErrorCode
  readonly next?: boolean
  readonly detail?: string | null
  readonly param?: string | undefined
  readonly retryAfterMs?: number | undefined
}

/** A request that is offered to one line after another. */
export interface Offer<Outcome extends TurnOutcome> {
  /** Why it cannot be put to this line at all; undefined where it can. */
  unfit(line: Line): GatewayError | undefined
  /**
   * Puts it to a line.
   *
   * @param send what it is sent with.
   * @param ahead all lines that may be tried, in their order.
   * @throws what ends the call: no other line is tried.
   */
  put(chosen: ChosenLine, send: LineSender, ahead: readonly ChosenLine[]): Promise<Outcome>
}

/** What has it, or may have it. */
export interface Placed<Outcome> {
  readonly chosen: ChosenLine
  readonly outcome: Outcome
}

/**
 * The lines as others than {@link route} use them: requests that must not be sent twice, and requests to one line and no
 * other. Filters, order, circuits, rests and the trace are the same.
 *
 * @throws TypeError at construction when an option is unusable.
 * @example
 * const access = new LineAccess({ catalog, lines, ...config.routing })
 */
export class LineAccess {
  readonly #catalog: (call?: Call) => Catalog
  #options: ReturnType<typeof validateRouting>
  readonly #registry: LineRegistry
  readonly #table: CandidateTable

  constructor(options: RoutingOptions) {
    this.#options = validateRouting('LineAccess', options)
    this.#catalog = this.#options.catalog
    this.#registry = options.lines ?? new LineRegistry()
    this.#table = new CandidateTable(this.#registry)
  }

  /**
   * Offers what comes from now on in another order, or to another number of lines. What is being offered goes on as it
   * began. What is left out gets its default.
   *
   * @throws TypeError when an option is unusable; nothing is changed then.
   * @example
   * access.reroute(next.routing) // a config that takes the place of another
   */
  reroute({ strategy, maxAttempts }: Pick<RoutingOptions, 'strategy' | 'maxAttempts'>): void {
    const { catalog, region } = this.#options
    this.#options = validateRouting('LineAccess', {
      catalog,
      region,
      ...(strategy !== undefined && { strategy }),
      ...(maxAttempts !== undefined && { maxAttempts }),
    })
  }

  /** A line by its id; undefined where the config has none. */
  line(id: string): Line | undefined {
    return this.#catalog().lines.find((line) => line.id === id)
  }

  /**
   * What sends requests to that line, and to no other.
   *
   * @param note is told of each, before its answer is.
   */
  senderTo(line: Line, note?: AttemptNote): LineSender {
    const target = { line, state: this.#registry.stateOf(line), upstreamModel: null }
    return async (request, signal) => {
      const sending = new LineSend(target, request, signal)
      const result = await sending.run()
      note?.(sending.record(result.kind === 'answered' ? 'completed' : result.failure.code))
      return result
    }
  }

  /** The trace of a call that can go to one line and no other. */
  pinnedTrace(): RoutingTrace {
    return newTrace({ region: this.#options.region, strategyName: 'pinned' })
  }

  /** Where something of a line is to be had, and the headers that it wants: for what is passed on as it comes. */
  address(line: Line, path: string): { readonly url: string; readonly headers: readonly string[] } {
    return { url: line.origin + line.basePath + path, headers: lineHeaders(line, { accept: '*/*' }) }
  }

  /**
   * Offers a request to the candidate lines of a call, one after another, until one has it, or may have it. Writes the
   * trace of the call.
   *
   * @throws {GatewayError} the verdict where no line has it.
   */
  async place<Outcome extends TurnOutcome>(call: Call, offer: Offer<Outcome>): Promise<Placed<Outcome>> {
    const request = call.request as CallRequest
    const placement = new Placement(request, offer)
    call.routing = newTrace(this.#options)
    const list = this.#table.of(this.#catalog(call), request.model, request.operation)
    await tryCandidates(call, list, this.#options, placement)
    if (!placement.placed) throw call.refuse('client_closed_request')
    return placement.placed
  }
}

/** Offers one request to one line after another. */
class Placement<Outcome extends TurnOutcome> implements AttemptPolicy {
  readonly request: CallRequest
  placed: Placed<Outcome> | undefined
  readonly #offer: Offer<Outcome>
  #sending: LineSend | undefined
  #outcome: Outcome | undefined

  constructor(request: CallRequest, offer: Offer<Outcome>) {
    this.request = request
    this.#offer = offer
  }

  unfit(line: Line): GatewayError | undefined {
    return this.#offer.unfit(line)
  }

  async attempt(
    candidate: Candidate,
    _pass: CircuitPass,
    _deadline: number,
    ahead: readonly Candidate[],
  ): Promise<ExchangeEnd> {
    this.#sending = undefined
    const send: LineSender = (request, signal) => {
      // It is not cut short by what other attempts have taken: what was sent may be taken.
      this.#sending = new LineSend(candidate, request, signal)
      return this.#sending.run()
    }
    this.#outcome = await this.#offer.put(candidate, send, ahead)
    return endOf(this.#outcome)
  }

  get record(): AttemptRecord | undefined {
    return this.#outcome && this.#sending?.record(traceOutcome(this.#outcome))
  }

  finish(_end: ExchangeEnd, chosen: Candidate): undefined {
    if (this.#outcome) this.placed = { chosen, outcome: this.#outcome }
  }
}

/** What is the request's own fault, or a limit of the line's, is no mark against it. */
const BLAMED: ReadonlySet<ErrorCode> = new Set(['upstream_error', 'upstream_timeout', 'upstream_overloaded'])

/** What an outcome is to the loop: where nobody knows, no other line is tried, and no verdict told. */
function endOf(outcome: TurnOutcome): ExchangeEnd {
  if (outcome.kind === 'taken') return { kind: 'served' }
  const elsewhere = outcome.next === true
  const code = codeOf(outcome)
  const failure: Failure = {
    code,
    retryable: elsewhere,
    blame: BLAMED.has(code),
    detail: outcome.detail ?? null,
    retryAfterMs: outcome.retryAfterMs,
    param: outcome.param,
  }
  return { kind: 'failed', failure, committed: outcome.kind === 'unknown', elsewhere, lineFault: false }
}

function codeOf({ code }: TurnOutcome): ErrorCode {
  return code ?? 'upstream_error'
}

function traceOutcome(outcome: TurnOutcome): AttemptOutcome {
  return outcome.kind === 'taken' ? 'completed' : codeOf(outcome)
}
