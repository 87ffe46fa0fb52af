import type { CallRequest, ChosenLine, LineSender, OpenCall } from '../../../core/call/index.ts'
import { type Line, NO_TAGS } from '../../../core/catalog/index.ts'
import { GatewayError } from '../../../core/errors/index.ts'
import {
  taskParameters,
  textsOf,
  type VideoBody,
  type VideoTaskBody,
} from '../../../core/operations/index.ts'
import {
  type CreateTarget,
  type TaskIntent,
  taskIdOf,
  type VideoFacts,
  type VideoTask,
} from '../../../ledger/tasks/task.ts'
import { mostItCosts } from '../../../ledger/tasks/task-cost.ts'
import type { LineAccess } from '../../../routing/line-access.ts'
import { DEFAULT_SIZE, framingOf, sizeOf } from '../lines/frame-size.ts'
import { makesVideos, unfitFor, type VideoLineClients } from '../lines/line-clients.ts'
import type { VideoCreate } from '../lines/video-create.ts'
import type { CreateOutcome } from '../tasks/line-client.ts'
import { CreateRecord, type RecordDeps } from './create-record.ts'

/** The parts that {@link CreateCall} works with. */
export interface CreateDeps extends RecordDeps {
  readonly lines: LineAccess
  readonly clients: VideoLineClients
}

/** How long after its line's timeouts a create without an answer counts as unresolved. */
const MARGIN_MS = 30_000
/** A create is never aborted: the line may have accepted it already. */
const NEVER = new AbortController().signal

/**
 * One create: writes the intent and its hold, sends the request to one line after another until one accepts it, then
 * writes the record. If anything fails in between, the money stays held if a line may have accepted the create, and is
 * released if no line has.
 */
export class CreateCall {
  readonly #call: OpenCall
  readonly #request: CallRequest
  readonly #deps: CreateDeps
  readonly #source: VideoTask | undefined
  readonly #create: VideoCreate
  readonly #faults = new Map<Line['protocol'], GatewayError | undefined>()
  readonly #record: CreateRecord

  /** @param source the video to be remixed. */
  constructor(call: OpenCall, request: CallRequest, deps: CreateDeps, source: VideoTask | undefined) {
    this.#call = call
    this.#request = request
    this.#deps = deps
    this.#source = source
    this.#record = new CreateRecord(call, deps)
    const { operation, body } = request
    this.#create = { operation, body, remixOf: source?.upstreamId ?? null }
  }

  /**
   * Creates the video. Call it once.
   *
   * @param answerOf returns the answer to the caller.
   * @returns the answer; everything in it is durable.
   * @throws {GatewayError} if the call is refused, or if it is unknown whether a line accepted the create.
   */
  async run(answerOf: (task: VideoTask) => string): Promise<string> {
    const { chosen, outcome } = await this.#submit()
    if (outcome.kind === 'accepted') return this.#record.accepted(chosen, outcome, answerOf)
    // `submit` throws if the last line has refused; this is for the types.
    if (outcome.kind === 'refused') throw new GatewayError(outcome.code)
    throw await this.#record.unresolved(chosen, outcome)
  }

  async #submit() {
    try {
      return await this.#deps.lines.submit(this.#call, {
        unfit: (line) => this.#unfit(line),
        sendTo: (chosen, send, ahead) => this.#sendTo(chosen, send, ahead),
      })
    } catch (error) {
      await this.#record.withdraw()
      throw this.#withParam(error)
    }
  }

  /**
   * Returns why a line cannot get this create. The result is the same for all lines of a protocol, so it is computed
   * once.
   */
  #unfit(line: Line): GatewayError | undefined {
    if (!makesVideos(line)) return new GatewayError('no_candidate')
    const { protocol } = line
    if (!this.#faults.has(protocol)) this.#faults.set(protocol, unfitFor(this.#create, line))
    return this.#faults.get(protocol)
  }

  /** Replaces a general `unsupported_feature` by the fault that names the member. */
  #withParam(error: unknown): unknown {
    if (!(error instanceof GatewayError && error.code === 'unsupported_feature')) return error
    for (const fault of this.#faults.values()) if (fault?.code === 'unsupported_feature') return fault
    return error
  }

  async #sendTo(chosen: ChosenLine, send: LineSender, ahead: readonly ChosenLine[]): Promise<CreateOutcome> {
    if (this.#call.left) throw this.#call.refuse('client_closed_request')
    await this.#announce(chosen, ahead)
    const client = this.#deps.clients.with(chosen.line, send)
    if (!client) throw new GatewayError('no_candidate')
    try {
      return await client.create({ create: this.#create, upstreamModel: chosen.upstreamModel }, NEVER)
    } catch (error) {
      // The request may have been sent already.
      this.#call.logger.error({ err: error, requestId: this.#call.id }, 'video: sending a create failed')
      return { kind: 'unknown', code: 'internal_error', upstreamStatus: null, detail: String(error) }
    }
  }

  #announce({ line, upstreamModel, price }: ChosenLine, ahead: readonly ChosenLine[]): Promise<void> {
    const { totalMs, connectMs } = line.timeouts
    const answerBy = Date.now() + connectMs + totalMs + MARGIN_MS
    const target = { line: line.id, upstreamModel, price, lineCost: line.cost, answerBy }
    return this.#record.announce(target, () => this.#intentFor(target, ahead))
  }

  #intentFor(target: CreateTarget, ahead: readonly ChosenLine[]): TaskIntent {
    const { id, startedAt: createdAt, principal, user, tags, idempotency } = this.#call
    if (!principal) throw new TypeError('video: there is no account to charge; mount authenticate before it')
    const facts = requestedFacts(this.#request, this.#source)
    const claim = idempotency?.claim ?? null
    const { accountId: account, keyId: key } = principal
    return {
      ...target,
      id: taskIdOf(id),
      requestId: id,
      account,
      key,
      budgets: this.#deps.budgets?.matching({ account, key, user, tags }, Date.now()),
      user,
      tags: tags ?? NO_TAGS,
      model: this.#request.model.id,
      protocol: this.#create.operation.protocol === 'ark' ? 'ark' : 'openai',
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

function requestedFacts(request: CallRequest, source: VideoTask | undefined): VideoFacts {
  const { operation, body, units: seconds } = request
  const nothing: VideoFacts = {
    seconds,
    size: null,
    resolution: null,
    ratio: null,
    framesPerSecond: null,
    seed: null,
    audio: null,
    remixOf: source?.id ?? null,
  }
  if (operation.protocol === 'ark') return { ...nothing, ...ofTask(body.json as VideoTaskBody) }
  return { ...nothing, ...ofSize(source ? source.facts.size : (body.json as VideoBody).size) }
}

function ofSize(given: string | null | undefined): Partial<VideoFacts> {
  const size = given ?? DEFAULT_SIZE
  return { size, ...framingOf(size) }
}

function ofTask(body: VideoTaskBody): Partial<VideoFacts> {
  const { given } = taskParameters(body, textsOf(body))
  const seed = given.get('seed')
  const [resolution, ratio] = [textOf(given.get('resolution')), textOf(given.get('ratio'))]
  return {
    resolution,
    ratio,
    size: (resolution && ratio && sizeOf({ resolution, ratio })) || null,
    seed: typeof seed === 'number' && Number.isSafeInteger(seed) ? seed : null,
  }
}

function textOf(value: unknown): string | null {
  return typeof value === 'string' ? value.slice(0, 40).toWellFormed() : null
}
