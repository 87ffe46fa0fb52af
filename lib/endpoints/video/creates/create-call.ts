import type { Call, CallRequest, ChosenLine, LineSender } from '../../../core/call/index.ts'
import type { Line } from '../../../core/catalog/index.ts'
import { GatewayError } from '../../../core/errors/index.ts'
import { makesVideos, unfitFor, type VideoLineClients } from '../lines/line-clients.ts'
import type { VideoCreate } from '../lines/video-create.ts'
import type { VideoLines } from '../lines/video-lines.ts'
import type { CreateOutcome } from '../tasks/line-client.ts'
import type { RecordKeeper } from '../tasks/record-keeper.ts'
import { type TaskIntent, taskIdOf, type VideoTask } from '../tasks/task.ts'
import { mostItCosts } from '../tasks/task-cost.ts'
import type { TaskStore } from '../tasks/task-store.ts'
import { CreateRecord, type CreateTarget } from './create-record.ts'
import { requestedFacts } from './requested-facts.ts'

/** What a create works with. */
export interface CreateDeps {
  readonly tasks: TaskStore
  /** Writes what became of creates. */
  readonly records: RecordKeeper
  readonly lines: VideoLines
  readonly clients: VideoLineClients
}

/** A create that was not answered so much later than its line's clocks allow is in doubt. */
const MARGIN_MS = 30_000
/** A create is never given up: what was sent may be taken. */
const NEVER = new AbortController().signal

/**
 * One create: the intent and its hold, then the request to one line after another until one has it, then the record.
 * Whatever goes wrong in between, the money stays held where a line may have it, and is free where none has.
 */
export class CreateCall {
  readonly #call: Call
  readonly #request: CallRequest
  readonly #deps: CreateDeps
  readonly #source: VideoTask | undefined
  readonly #order: VideoCreate
  readonly #faults = new Map<Line['protocol'], GatewayError | undefined>()
  readonly #record: CreateRecord

  /** @param source the video that is to be remixed. */
  constructor(call: Call, request: CallRequest, deps: CreateDeps, source: VideoTask | undefined) {
    this.#call = call
    this.#request = request
    this.#deps = deps
    this.#source = source
    this.#record = new CreateRecord(call, deps.tasks, deps.records)
    const { operation, body } = request
    this.#order = { operation, body, remixOf: source?.upstreamId ?? null }
  }

  /**
   * Creates the video, once.
   *
   * @param answerOf words the answer to the caller.
   * @returns the answer; all that it says is durable.
   * @throws {GatewayError} what refuses the call, or says that nobody knows what has become of it.
   */
  async run(answerOf: (task: VideoTask) => string): Promise<string> {
    const { chosen, outcome } = await this.#place()
    if (outcome.kind === 'taken') return this.#record.taken(chosen, outcome, answerOf)
    // A line that surely has not taken it never ends the search without an error.
    if (outcome.kind === 'refused') throw new GatewayError(outcome.code)
    throw await this.#record.doubtful(chosen, outcome)
  }

  async #place() {
    try {
      return await this.#deps.lines.place(this.#call, {
        unfit: (line) => this.#unfit(line),
        put: (chosen, send, ahead) => this.#put(chosen, send, ahead),
      })
    } catch (error) {
      await this.#record.withdraw()
      throw this.#naming(error)
    }
  }

  /** The same for all lines of a protocol that make videos, and asked for each of them. */
  #unfit(line: Line): GatewayError | undefined {
    if (!makesVideos(line)) return new GatewayError('no_candidate')
    const { protocol } = line
    if (!this.#faults.has(protocol)) this.#faults.set(protocol, unfitFor(this.#order, line))
    return this.#faults.get(protocol)
  }

  /** Which member it is that no line has words for. */
  #naming(error: unknown): unknown {
    if (!(error instanceof GatewayError && error.code === 'unsupported_feature')) return error
    for (const fault of this.#faults.values()) if (fault?.code === 'unsupported_feature') return fault
    return error
  }

  async #put(chosen: ChosenLine, send: LineSender, ahead: readonly ChosenLine[]): Promise<CreateOutcome> {
    if (this.#call.left) throw this.#call.refuse('client_closed_request')
    await this.#announce(chosen, ahead)
    const client = this.#deps.clients.with(chosen.line, send)
    if (!client) throw new GatewayError('no_candidate')
    try {
      return await client.create({ order: this.#order, upstreamModel: chosen.upstreamModel }, NEVER)
    } catch (error) {
      // It may have been sent by then.
      this.#call.logger.error({ err: error, requestId: this.#call.id }, 'video: a create broke')
      return { kind: 'unknown', code: 'internal_error', upstreamStatus: null, detail: String(error) }
    }
  }

  #announce({ line, upstreamModel, price }: ChosenLine, ahead: readonly ChosenLine[]): Promise<void> {
    const { totalMs, connectMs } = line.timeouts
    const answerBy = Date.now() + connectMs + totalMs + MARGIN_MS
    const target = { line: line.id, upstreamModel, price, answerBy }
    return this.#record.announce(target, () => this.#intentFor(target, ahead))
  }

  #intentFor(target: CreateTarget, ahead: readonly ChosenLine[]): TaskIntent {
    const { id, startedAt: createdAt, principal, idempotency } = this.#call
    if (!principal) throw new TypeError('video: nobody to charge; mount authenticate before it')
    const facts = requestedFacts(this.#request, this.#source)
    const claim = idempotency?.claim ?? null
    return {
      ...target,
      id: taskIdOf(id),
      requestId: id,
      account: principal.accountId,
      key: principal.keyId,
      model: this.#request.model.id,
      protocol: this.#order.operation.protocol === 'ark' ? 'ark' : 'openai',
      facts,
      hold: mostItCosts(
        facts,
        ahead.map(({ price }) => price),
      ),
      createdAt,
      claim: claim && { id: claim.id, owner: claim.owner },
    }
  }
}
