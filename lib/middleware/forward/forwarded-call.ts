import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http'
import {
  type Call,
  type CallOutcome,
  type RoutingTrace,
  type Upgrade,
  upgradeOf,
} from '../../core/call/index.ts'
import type { Price } from '../../core/catalog/index.ts'
import { GatewayError } from '../../core/errors/index.ts'
import type { Failure } from '../../routing/attempt/outcome.ts'
import type { Candidate } from '../../routing/candidates/candidate.ts'
import { circuitDetail, emptied } from '../../routing/candidates/filters.ts'
import { verdict } from '../../routing/candidates/verdict.ts'
import type { CircuitPass } from '../../routing/lines/circuit.ts'
import { type Opening, Relay, type RelayEnd } from './relay.ts'
import {
  answerHeaders,
  handshakeHeaders,
  handshakeText,
  lineHeaders,
  requestHeaders,
} from './relay-headers.ts'
import { failureOfRelayed, mannerOf, NOT_SWITCHED, noWebSocket } from './relay-status.ts'
import { readError, relayAnswer } from './relayed-answer.ts'
import { relaySocket, watchUnread } from './relayed-socket.ts'
import type { UpstreamTarget } from './upstream-proxy.ts'

/** What is passed on, and at what price. */
export interface Forwarding {
  /** Behind a line's base URL, with the query. */
  readonly path: string
  /** Sent in place of the gateway's own of the same name. */
  readonly headers: Readonly<Record<string, string>>
  /** Of a success, whatever it holds; null = nothing is noted as used. */
  readonly price: Price | null
  /** Most lines tried. */
  readonly maxAttempts: number
}

const NOTHING_USED = {
  inputTokens: 0,
  cachedInputTokens: 0,
  cacheWriteTokens: 0,
  outputTokens: 0,
  source: 'measured',
} as const

/** No body was read that a refusal could name a member of. */
const UNREAD_BODY = { raw: Buffer.alloc(0), json: {} }

const BROKEN_OFF = 'The upstream broke the answer off. What came is not the whole of it.'

/** One call whose bodies are passed on unread, to the first candidate that can be connected to. */
export class ForwardedCall {
  readonly #call: Call
  readonly #req: IncomingMessage
  readonly #res: ServerResponse
  readonly #trace: RoutingTrace
  readonly #forwarding: Forwarding
  readonly #upgrade: Upgrade | undefined
  readonly #failures: Failure[] = []
  #stopWatchingUnread: () => void = () => {}

  constructor(
    call: Call,
    req: IncomingMessage,
    res: ServerResponse,
    trace: RoutingTrace,
    forwarding: Forwarding,
  ) {
    this.#call = call
    this.#req = req
    this.#res = res
    this.#trace = trace
    this.#forwarding = forwarding
    this.#upgrade = upgradeOf(req)
  }

  /**
   * Passes the request on and the answer back. Another line is tried only where a connection could not be made: nothing
   * of the body has been read then.
   *
   * @throws {GatewayError} what the caller is answered; after the first byte, why the answer is cut off.
   */
  async run(candidates: readonly Candidate[]): Promise<void> {
    if (this.#upgrade) this.#stopWatchingUnread = watchUnread(this.#upgrade.socket)
    try {
      await this.#tryEach(candidates)
    } finally {
      this.#stopWatchingUnread()
    }
  }

  async #tryEach(candidates: readonly Candidate[]): Promise<void> {
    for (const candidate of candidates.slice(0, this.#forwarding.maxAttempts)) {
      if (this.#call.left) return
      const pass = this.#enter(candidate)
      if (!pass) continue
      const relay = new Relay(candidate, this.#req)
      const stopWatching = this.#call.onLeave(() => {
        this.#trace.disconnect = { policy: 'abort', ended: 'aborted' }
        relay.abandon()
      })
      try {
        const opening = await this.#open(relay, candidate)
        if (await this.#answer(relay, pass, opening)) return
      } finally {
        stopWatching()
        // Whatever was thrown, such as by the settlement: nothing of the exchange outlives its call.
        relay.abandon()
        this.#trace.attempts.push(relay.record)
      }
    }
    if (this.#failures.length > 0) throw verdict(this.#failures, UNREAD_BODY)
    throw emptied(candidates, this.#trace.eliminated)
  }

  /** The circuit's pass for this candidate now, if it may be tried. */
  #enter({ line, state }: Candidate): CircuitPass | undefined {
    const pass = state.circuit.enter()
    const detail = circuitDetail(state.circuit.state)
    if (!pass) this.#trace.eliminated.push({ line: line.id, reason: 'circuit_open', detail })
    return pass
  }

  #open(relay: Relay, { line }: Candidate): Promise<Opening> {
    const req = this.#req
    const target: UpstreamTarget = {
      origin: line.origin,
      path: line.basePath + this.#forwarding.path,
      method: req.method ?? 'GET',
      headers: this.#upgrade ? handshakeHeaders(req) : requestHeaders(req),
      lineHeaders: lineHeaders(line, req.headers, this.#forwarding.headers),
    }
    return this.#upgrade ? relay.upgrade(target) : relay.send(target)
  }

  /** @returns whether the call is over; else the next line may be tried. */
  async #answer(relay: Relay, pass: CircuitPass, opening: Opening): Promise<boolean> {
    switch (opening.kind) {
      case 'abandoned':
        pass.abandon()
        return true
      case 'failed':
        this.#note(relay, pass, opening.failure)
        if (relay.connected) throw verdict(this.#failures, UNREAD_BODY)
        return false
      case 'switched':
        await this.#goOnSwitched(relay, pass, opening)
        return true
      case 'answered':
        await this.#passBack(relay, pass, opening.response)
        return true
    }
  }

  /** Passes an answer back, or words what it says of an error. */
  async #passBack(relay: Relay, pass: CircuitPass, response: IncomingMessage): Promise<void> {
    const status = response.statusCode ?? 0
    const manner = this.#upgrade ? 'error' : mannerOf(status)
    if (manner === 'error') {
      const body = await readError(relay, response)
      if (this.#call.left) return pass.abandon()
      const failure =
        status >= 200 && status < 300 ? NOT_SWITCHED : failureOfRelayed(status, response.headers, body)
      relay.conclude({ kind: 'failed', failure })
      this.#note(relay, pass, failure)
      throw failure === NOT_SWITCHED ? noWebSocket() : verdict(this.#failures, UNREAD_BODY)
    }
    pass.success()
    await this.#settle(relay, { status, errorCode: null, finish: 'completed' }, manner === 'whole')
    if (this.#call.left) return
    this.#writeHead(status, response, manner === 'whole')
    if (manner === 'bare') {
      relay.conclude({ kind: 'completed' })
      this.#res.end()
      return
    }
    const end = await relayAnswer(relay, response, this.#res)
    if (end.kind === 'completed') this.#res.end()
    else this.#breakOff(relay, pass, end)
  }

  #writeHead(status: number, { headers }: IncomingMessage, withBody: boolean): void {
    const kept = answerHeaders(headers)
    if (!withBody) {
      // Of the body that stays behind.
      for (const name of ['content-encoding', 'content-length', 'content-type']) delete kept[name]
      if (status !== 304) kept['content-length'] = '0'
    }
    this.#res.writeHead(status, STATUS_CODES[status], kept)
    this.#res.flushHeaders()
  }

  /** The line has switched protocols: so does the caller, and both talk until one ends. */
  async #goOnSwitched(
    relay: Relay,
    pass: CircuitPass,
    opening: Extract<Opening, { kind: 'switched' }>,
  ): Promise<void> {
    const upgrade = this.#upgrade as Upgrade
    pass.success()
    await this.#settle(relay, { status: 101, errorCode: null, finish: 'completed' }, true)
    if (this.#call.left) return
    const { id, protocol } = this.#call
    const handshake = handshakeText(opening.response.headers, {
      // What the chain has set on the response, such as the limits, goes with it.
      ...this.#res.getHeaders(),
      ...Object.fromEntries(protocol.requestIdHeaders.map((name) => [name, id])),
    })
    this.#res.detachSocket(upgrade.socket)
    this.#stopWatchingUnread()
    const end = await relaySocket(relay, upgrade, opening, handshake)
    if (end.kind !== 'failed') return
    relay.candidate.state.circuit.failLate(pass)
    this.#call.outcome = { status: 101, errorCode: end.failure.code, finish: 'interrupted' }
  }

  /**
   * Charges a success, durably, before its head goes out: from then on a caller may have what it asked for.
   *
   * @throws {GatewayError} where that cannot be done in time.
   */
  async #settle({ candidate, clocks }: Relay, outcome: CallOutcome, success: boolean): Promise<void> {
    const { price } = this.#forwarding
    if (!success || !price) return
    // It is not the line that is waited for.
    clocks.pause()
    this.#call.usage = NOTHING_USED
    this.#call.servedBy = { line: candidate.line.id, price }
    // How it ends is known only later, so that its log entry is not written with its charge.
    if (this.#call.entryBy === 'ledger') this.#call.entryBy = 'writer'
    await this.#call.settle({ outcome, unsent: null })
    this.#call.prove()
  }

  #note({ candidate: { state } }: Relay, pass: CircuitPass, failure: Failure): void {
    if (failure.retryAfterMs !== undefined) state.rest(failure.retryAfterMs)
    if (failure.blame) pass.failure()
    else pass.abandon()
    this.#failures.push(failure)
  }

  /** A broken answer: thrown, so that the connection is cut and nobody takes what came for the whole. */
  #breakOff({ candidate }: Relay, pass: CircuitPass, end: RelayEnd): void {
    if (end.kind !== 'failed' || this.#call.left) return
    if (end.failure.blame) candidate.state.circuit.failLate(pass)
    throw new GatewayError(end.failure.code, { message: BROKEN_OFF })
  }
}
