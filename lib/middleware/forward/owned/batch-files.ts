import type { OpenCall } from '../../../core/call/index.ts'
import { GatewayError } from '../../../core/errors/index.ts'
import { isJsonObject, JsonFault, parseJson, parseUnambiguous } from '../../../core/json/index.ts'
import { type BodyBounds, BodyCollector, HeldBody } from '../../../core/memory/index.ts'
import { type Reference, referencesIn } from '../../../core/operations/body/references.ts'
import { MAX_BYTES_AT_ONCE, nextTurn } from '../../../core/timing/index.ts'
import { RecentValues, type UpstreamResources } from '../../../core/upstream-resources/index.ts'
import { DispatchExchange } from '../../../routing/attempt/dispatch-exchange.ts'
import { type AttemptEnd, failedEnd, malformed } from '../../../routing/attempt/failure.ts'
import { pathOn } from '../../../routing/attempt/upstream-path.ts'
import { lineHeaders } from '../../../routing/attempt/upstream-request.ts'
import type { Candidate } from '../../../routing/candidates/candidate.ts'
import type { AttemptResult } from '../../../routing/try-candidates.ts'
import { checkModels, type ModelCheck } from '../body-checks/model-names.ts'
import { failureOfRelayed } from '../relayed-answer.ts'

/** Where a request names the files whose lines it has run: `input_file_id` of OpenAI, `input_files` of Mistral. */
const TO_RUN = /(?:^|\.)input[_-]?files?(?:[_-]?ids?)?$/i

/** Returns the files whose lines a request has run. */
export function filesToRun(references: readonly Reference[]): ReadonlySet<string> {
  const named = references.filter(({ kind, place }) => kind === 'file' && TO_RUN.test(place()))
  return new Set(named.map(({ id }) => id))
}

/** The rules for the lines of a file. */
interface BatchRules extends BodyBounds {
  /** Checks the models that they name. */
  readonly checkModel?: ModelCheck | undefined
  readonly call: OpenCall
  readonly resources: UpstreamResources
  /** Aborted, with the reason, when the call must end. */
  readonly signal: AbortSignal
}

/** Things that are looked up together. */
const AT_ONCE = 500
/** The lines that name them are in memory until then. */
const BYTES_AT_ONCE = 1024 * 1024
const NEWLINE = 0x0a
const MAX_ERROR_BYTES = 64 * 1024

/**
 * Reads a file at its line before a batch runs it: each of its lines is a request, which may only name what the account owns.
 * No more of the file is in memory than one of its lines, and what the last ones name.
 */
export class BatchLines {
  /** The refusal of what the file holds; undefined if it may run, or could not be read. */
  refusal: GatewayError | undefined
  readonly #rules: BatchRules
  readonly #file: string
  /** The resources that are known to be the account's, and of the line. */
  readonly #known = new Set<string>()
  #heldBytes = 0
  #unknown = new Map<string, Reference>()
  /** Of the lines that name these. */
  #unknownBytes = 0
  #line = 0
  #rest: Buffer[] = []
  #restBytes = 0

  constructor(file: string, rules: BatchRules) {
    this.#file = file
    this.#rules = rules
  }

  /** @throws {GatewayError} `not_found`, or `invalid_request` for a line that cannot be read or names resources of two lines. */
  async readAt(candidate: Candidate): Promise<AttemptResult> {
    const { call, budget } = this.#rules
    const { line, state } = candidate
    const giveUp = new AbortController()
    const signal = AbortSignal.any([this.#rules.signal, giveUp.signal])
    const options = {
      method: 'GET',
      path: pathOn(line, `/files/${encodeURIComponent(this.#file)}/content`),
      headers: lineHeaders(line, { accept: '*/*' }),
      body: null,
      idempotent: false,
    } as const
    const exchange = new DispatchExchange(candidate, options, state.transport, Infinity)
    const onAbort = (): void => exchange.abandon()
    if (signal.aborted) onAbort()
    signal.addEventListener('abort', onAbort)
    const held = new HeldBody(call, budget, (error) => giveUp.abort(error))
    let end: AttemptEnd = { kind: 'abandoned' }
    try {
      end = await this.#receive(exchange, held)
    } catch (error) {
      signal.throwIfAborted()
      if (error instanceof GatewayError && error.status < 500) this.refusal = error
      throw error
    } finally {
      held.release()
      signal.removeEventListener('abort', onAbort)
      // Nothing of the exchange outlives what was thrown.
      exchange.conclude(end)
    }
    signal.throwIfAborted()
    return { ...end, record: exchange.recordOf(end) }
  }

  async #receive(exchange: DispatchExchange, held: HeldBody): Promise<AttemptEnd> {
    const error = new BodyCollector(MAX_ERROR_BYTES)
    const head = await exchange.send(({ status }) => (status === 200 ? undefined : error))
    if (head && head.status !== 200) {
      if (exchange.isAbandoned) return { kind: 'abandoned' }
      if (exchange.failure) return failedEnd(exchange.failure)
      return failedEnd(failureOfRelayed(head.status, head.headers, parseJson(error.take().toString())))
    }
    if (head) for await (const piece of exchange.body) await this.#take(piece, held)
    if (exchange.isAbandoned) return { kind: 'abandoned' }
    if (!head || exchange.failure) return failedEnd(exchange.failure ?? malformed('no answer'))
    await this.#end()
    return { kind: 'served' }
  }

  /** @param held counts the memory of the largest line so far. */
  async #take(piece: Buffer, held: HeldBody): Promise<void> {
    let from = 0
    for (let end = piece.indexOf(NEWLINE); end >= 0; end = piece.indexOf(NEWLINE, from)) {
      this.#rest.push(piece.subarray(from, end))
      const line = this.#rest.length === 1 ? (this.#rest[0] as Buffer) : Buffer.concat(this.#rest)
      this.#rest = []
      this.#restBytes = 0
      from = end + 1
      await this.#check(line)
    }
    this.#rest.push(piece.subarray(from))
    this.#restBytes += piece.length - from
    if (this.#restBytes > this.#rules.bodyLimitBytes) throw this.#refuse(this.#line + 1, 'is too large')
    held.count(this.#restBytes - this.#heldBytes)
    this.#heldBytes = Math.max(this.#heldBytes, this.#restBytes)
  }

  async #end(): Promise<void> {
    await this.#check(Buffer.concat(this.#rest))
    await this.#lookUp()
  }

  async #check(line: Buffer): Promise<void> {
    this.#line++
    const { call } = this.#rules
    if (line.length > MAX_BYTES_AT_ONCE) await nextTurn(call.principal?.accountId)
    const before = this.#unknown.size
    for (const reference of this.#namedBy(line)) {
      const name = `${reference.kind} ${reference.id}`
      if (!this.#known.has(name) && !this.#unknown.has(name)) this.#unknown.set(name, reference)
    }
    if (this.#unknown.size > before) this.#unknownBytes += line.length
    if (this.#unknown.size >= AT_ONCE || this.#unknownBytes >= BYTES_AT_ONCE) await this.#lookUp()
  }

  #namedBy(line: Buffer): readonly Reference[] {
    if (line.every(isSpace)) return []
    let json: unknown
    try {
      json = parseUnambiguous(line)
    } catch (fault) {
      if (!(fault instanceof JsonFault)) throw fault
      throw this.#refuse(this.#line, `cannot be read. ${fault.message}`)
    }
    if (!isJsonObject(json)) return []
    const { checkModel } = this.#rules
    if (checkModel) checkModels(json, checkModel)
    const at = this.#line
    return referencesIn(json).map(({ kind, id, place }) => ({
      kind,
      id,
      place: () => `line ${at} of ${this.#file}: ${place()}`,
    }))
  }

  async #lookUp(): Promise<void> {
    if (this.#unknown.size === 0) return
    const unknown = this.#unknown
    this.#unknown = new Map()
    this.#unknownBytes = 0
    await this.#rules.resources.pin(this.#rules.call, [...unknown.values()])
    for (const name of unknown.keys()) this.#known.add(name)
  }

  #refuse(line: number, what: string): GatewayError {
    return new GatewayError('invalid_request', {
      message: `Line ${line} of the file ${this.#file.slice(0, 100)} ${what.slice(0, 300)}`,
    })
  }
}

function isSpace(byte: number): boolean {
  return byte === 0x20 || (byte >= 0x09 && byte <= 0x0d)
}

/** Short, because a key may be allowed to use more models. */
const KNOWN_MS = 60_000

/** The files with a line that must not run, for a minute after they were read, so that each attempt does not download them again. */
export class RefusedFiles {
  readonly #refused = new RecentValues<GatewayError>(KNOWN_MS)

  /** @throws {GatewayError} the refusal of a file that the caller has lately tried to run. */
  check(call: OpenCall, file: string): void {
    const refusal = this.#refused.find(accountOf(call), nameOf(call, file))
    if (!refusal) return
    const { code, message, param, details } = refusal
    throw new GatewayError(code, { message, param, details })
  }

  add(call: OpenCall, file: string, refusal: GatewayError): void {
    this.#refused.add(accountOf(call), nameOf(call, file), refusal)
  }
}

/** Keys of one account may use different models. */
function nameOf({ principal }: OpenCall, file: string): string {
  return JSON.stringify([principal?.keyId, file])
}

function accountOf({ principal }: OpenCall): string {
  return principal?.accountId ?? ''
}
