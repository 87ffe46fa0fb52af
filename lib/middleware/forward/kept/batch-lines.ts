import type { IncomingHttpHeaders } from 'node:http'
import { PassThrough } from 'node:stream'
import { HeldBody } from '../../../core/body-budget/index.ts'
import { BodyCollector } from '../../../core/bytes/index.ts'
import type { AttemptRecord, Call } from '../../../core/call/index.ts'
import { GatewayError } from '../../../core/errors/index.ts'
import { isJsonObject, JsonFault, parseJson, parseUnambiguous } from '../../../core/json/index.ts'
import type { KeptThings } from '../../../core/kept/index.ts'
import { type Reference, referencesIn } from '../../../core/operations/body/references.ts'
import { MAX_BYTES_AT_ONCE, takeTurn } from '../../../core/turns/index.ts'
import { DispatchExchange, type ResponseHandler } from '../../../routing/attempt/dispatch-exchange.ts'
import type { ExchangeEnd, Failure } from '../../../routing/attempt/failure.ts'
import { pathOn } from '../../../routing/attempt/upstream-path.ts'
import { lineHeaders } from '../../../routing/attempt/upstream-request.ts'
import type { AttemptPolicy } from '../../../routing/attempt-policy.ts'
import type { Candidate } from '../../../routing/candidates/candidate.ts'
import { failureOfRelayed } from '../relay-status.ts'
import type { BodyRules } from './judged-body.ts'
import { judgeModels } from './named-models.ts'

/** Where a request names the files whose lines it has run: `input_file_id` of OpenAI, `input_files` of Mistral. */
const TO_RUN = /(?:^|\.)input[_-]?files?(?:[_-]?ids?)?$/i

/** Returns the files whose lines a request has run. */
export function filesToRun(references: readonly Reference[]): ReadonlySet<string> {
  const named = references.filter(({ kind, place }) => kind === 'file' && TO_RUN.test(place()))
  return new Set(named.map(({ id }) => id))
}

/** What the lines of a file are judged by. */
export interface BatchRules extends BodyRules {
  readonly call: Call
  readonly kept: KeptThings
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
export class BatchLines implements AttemptPolicy {
  readonly request = null
  readonly #rules: BatchRules
  readonly #file: string
  #exchange: DispatchExchange<ExchangeEnd> | undefined
  /** Those that are known to be the account's, and of the line. */
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

  get record(): AttemptRecord | undefined {
    return this.#exchange?.record
  }

  /** @throws {GatewayError} `not_found`, or `invalid_request` for a line that cannot be read or names things of two lines. */
  async attempt(candidate: Candidate): Promise<ExchangeEnd> {
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
    const exchange = new DispatchExchange<ExchangeEnd>(candidate, options, state.wire, Infinity)
    this.#exchange = exchange
    const content = new FileContent(exchange)
    signal.addEventListener('abort', () => exchange.abandon())
    const held = new HeldBody(call, budget, (error) => giveUp.abort(error))
    const ended = exchange.run(content, !signal.aborted)
    try {
      for await (const piece of content.pieces) await this.#take(piece, held)
      if ((await ended).kind === 'served') await this.#end()
    } catch (error) {
      signal.throwIfAborted()
      throw error
    } finally {
      held.release()
      // Nothing of the exchange outlives what was thrown.
      exchange.abandon()
    }
    signal.throwIfAborted()
    return ended
  }

  finish(): undefined {}

  /** @param held counts the memory of the largest line so far. */
  async #take(piece: Buffer, held: HeldBody): Promise<void> {
    let from = 0
    for (let end = piece.indexOf(NEWLINE); end >= 0; end = piece.indexOf(NEWLINE, from)) {
      this.#rest.push(piece.subarray(from, end))
      const line = this.#rest.length === 1 ? (this.#rest[0] as Buffer) : Buffer.concat(this.#rest)
      this.#rest = []
      this.#restBytes = 0
      from = end + 1
      await this.#judge(line)
    }
    this.#rest.push(piece.subarray(from))
    this.#restBytes += piece.length - from
    if (this.#restBytes > this.#rules.bodyLimitBytes) throw this.#refuse(this.#line + 1, 'is too large')
    held.count(this.#restBytes - this.#heldBytes)
    this.#heldBytes = Math.max(this.#heldBytes, this.#restBytes)
  }

  async #end(): Promise<void> {
    await this.#judge(Buffer.concat(this.#rest))
    await this.#lookUp()
  }

  async #judge(line: Buffer): Promise<void> {
    this.#line++
    const { call } = this.#rules
    if (line.length > MAX_BYTES_AT_ONCE)
      await new Promise<void>((resolve) => takeTurn(call.principal?.accountId, resolve))
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
    const { judgeModel } = this.#rules
    if (judgeModel) judgeModels(json, judgeModel)
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
    await this.#rules.kept.pin(this.#rules.call, [...unknown.values()])
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

/** The content of a file, at the speed at which it is read. */
class FileContent implements ResponseHandler<ExchangeEnd> {
  readonly decodes = true
  readonly pieces = new PassThrough()
  readonly #exchange: DispatchExchange<ExchangeEnd>
  #status = 0
  #headers: IncomingHttpHeaders = {}
  #error = new BodyCollector(MAX_ERROR_BYTES)

  constructor(exchange: DispatchExchange<ExchangeEnd>) {
    this.#exchange = exchange
    this.pieces.on('drain', () => exchange.resume())
  }

  start(status: number, headers: IncomingHttpHeaders): undefined {
    this.#status = status
    this.#headers = headers
  }

  push(chunk: Buffer): boolean {
    if (this.#status !== 200) return !this.#error.push(chunk)
    if (!this.pieces.write(chunk)) this.#exchange.pause()
    return false
  }

  flush(): ExchangeEnd | undefined {
    return this.#error.overflowed ? this.finish() : undefined
  }

  finish(): ExchangeEnd {
    this.pieces.end()
    if (this.#status === 200) return { kind: 'served' }
    const body = parseJson(this.#error.take().toString())
    return failed(failureOfRelayed(this.#status, this.#headers, body))
  }

  breakOff(failure: Failure): ExchangeEnd {
    this.pieces.end()
    return failed(failure)
  }

  abandon(): ExchangeEnd {
    this.pieces.destroy()
    return { kind: 'abandoned' }
  }
}

function failed(failure: Failure): ExchangeEnd {
  return { kind: 'failed', failure, committed: false, elsewhere: false, lineFault: failure.fault !== null }
}
