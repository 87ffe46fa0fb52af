import type {
  AttemptNote,
  AttemptOutcome,
  Call,
  CallRequest,
  ChosenLine,
  LineResult,
  LineSender,
  RoutingTrace,
} from '../../core/call/index.ts'
import type { Catalog, Line } from '../../core/catalog/index.ts'
import type { ErrorCode, GatewayError } from '../../core/errors/index.ts'
import { LineExchange } from '../attempt/line-exchange.ts'
import type { Failure } from '../attempt/outcome.ts'
import { lineHeaders } from '../attempt/upstream-request.ts'
import type { CircuitPass } from '../lines/circuit.ts'
import { LineRegistry } from '../lines/line-state.ts'
import { type Candidate, CandidateTable } from './candidate.ts'
import { circuitDetail, emptied, filterCandidates } from './filters.ts'
import { RetryBudgets } from './retry-budget.ts'
import { type RoutingOptions, validateRouting } from './routing-options.ts'
import { orderCandidates } from './strategies.ts'
import { verdict } from './verdict.ts'

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
  readonly #budgets = new RetryBudgets()

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
      const exchange = new LineExchange(target, request)
      const result = await exchange.run(signal)
      note?.(exchange.record(result.kind === 'answered' ? 'completed' : result.failure.code))
      return result
    }
  }

  /** The trace of a call that can go to one line and no other. */
  pinnedTrace(): RoutingTrace {
    return { region: this.#options.region, strategy: 'pinned', eliminated: [], attempts: [] }
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
    const { region, strategyName, strategy, maxAttempts } = this.#options
    call.routing = { region, strategy: strategyName, eliminated: [], attempts: [] }
    const { principal, pin } = call
    const context = { request, principal, pin, unfit: (line: Line) => offer.unfit(line) }
    const kept = filterCandidates(
      this.#table.of(this.#catalog(call), request.model, request.operation),
      context,
      call.routing.eliminated,
    )
    const ordered = orderCandidates(kept, strategy, call)
    const failures: Failure[] = []
    const budget = this.#budgets.of(request.model)
    budget.noteCall()
    for (const candidate of ordered) {
      if (failures.length >= maxAttempts) break
      if (isKeptAway(call, candidate)) continue
      if (failures.length > 0 && !budget.takeRetry()) {
        call.routing.retryBudgetSpent = true
        break
      }
      const pass = candidate.state.circuit.enter()
      if (!pass) continue
      const outcome = await this.#turn(call, candidate, pass, ordered, offer)
      if (outcome.kind !== 'refused') return { chosen: candidate, outcome }
      failures.push(failureOf(outcome))
      if (outcome.next !== true) break
    }
    if (failures.length > 0) throw verdict(failures, request.body)
    throw emptied(ordered, call.routing.eliminated)
  }

  async #turn<Outcome extends TurnOutcome>(
    call: Call,
    candidate: Candidate,
    pass: CircuitPass,
    ahead: readonly Candidate[],
    offer: Offer<Outcome>,
  ): Promise<Outcome> {
    let exchange: LineExchange | undefined
    const send = (...[request, signal]: Parameters<LineSender>): Promise<LineResult> => {
      exchange = new LineExchange(candidate, request)
      return exchange.run(signal)
    }
    try {
      call.prove()
      const outcome = await offer.put(candidate, send, ahead)
      report(candidate, pass, outcome)
      if (exchange) call.routing?.attempts.push(exchange.record(traceOutcome(outcome)))
      return outcome
    } catch (error) {
      pass.abandon()
      throw error
    }
  }
}

/** Whether its rest or its circuit keeps a line away by now; notes it. */
function isKeptAway(call: Call, { line, state }: Candidate): boolean {
  const resting = state.restMs > 0
  if (!resting && state.circuit.admits) return false
  const [reason, detail] = resting
    ? (['resting', 'answered 429 a moment ago'] as const)
    : (['circuit_open', circuitDetail(state.circuit.state)] as const)
  call.routing?.eliminated.push({ line: line.id, reason, detail })
  return true
}

/** What is the request's own fault, or a limit of the line's, is no mark against it. */
const BLAMED: ReadonlySet<ErrorCode> = new Set(['upstream_error', 'upstream_timeout', 'upstream_overloaded'])

function report({ state }: Candidate, pass: CircuitPass, outcome: TurnOutcome): void {
  if (outcome.retryAfterMs !== undefined) state.rest(outcome.retryAfterMs)
  if (outcome.kind === 'taken') pass.success()
  else if (BLAMED.has(codeOf(outcome))) pass.failure()
  else pass.abandon()
}

function codeOf({ code }: TurnOutcome): ErrorCode {
  return code ?? 'upstream_error'
}

function traceOutcome(outcome: TurnOutcome): AttemptOutcome {
  return outcome.kind === 'taken' ? 'completed' : codeOf(outcome)
}

function failureOf(outcome: TurnOutcome): Failure {
  const code = codeOf(outcome)
  return {
    code,
    retryable: outcome.next === true,
    blame: BLAMED.has(code),
    detail: outcome.detail ?? null,
    retryAfterMs: outcome.retryAfterMs,
    param: outcome.param,
  }
}
