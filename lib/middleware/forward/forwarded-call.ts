import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http'
import {
  type AttemptRecord,
  type Call,
  type CallOutcome,
  type Upgrade,
  upgradeOf,
} from '../../core/call/index.ts'
import type { Line, Price } from '../../core/catalog/index.ts'
import { GatewayError } from '../../core/errors/index.ts'
import { Departure } from '../../routing/attempt/departure.ts'
import type { ExchangeEnd } from '../../routing/attempt/exchange.ts'
import type { Candidate } from '../../routing/candidates/candidate.ts'
import type { CircuitPass } from '../../routing/lines/circuit.ts'
import type { AttemptPolicy } from '../../routing/try-candidates.ts'
import { type Opening, ProxiedExchange } from './proxied-exchange.ts'
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
}

const NOTHING_USED = {
  inputTokens: 0,
  cachedInputTokens: 0,
  cacheWriteTokens: 0,
  outputTokens: 0,
  source: 'measured',
} as const

const BROKEN_OFF = 'The upstream broke the answer off. What came is not the whole of it.'

/** It is ended at once: nobody reads what is passed on. */
const ABORT = { onDisconnect: 'abort', drainMs: 0 } as const

/**
 * One call whose bodies are passed on unread, to the first candidate that can be connected to. Another line is tried only
 * where a connection could not be made: nothing of the body has been read then.
 */
export class ForwardedCall implements AttemptPolicy {
  readonly request = null
  departure: Departure | undefined
  readonly #call: Call
  readonly #req: IncomingMessage
  readonly #res: ServerResponse
  readonly #forwarding: Forwarding
  readonly #upgrade: Upgrade | undefined
  readonly #stopWatchingUnread: () => void
  #exchange: ProxiedExchange | undefined
  /** What ends the call although the line did what it should, or in words of its own. */
  #error: unknown

  constructor(call: Call, req: IncomingMessage, res: ServerResponse, forwarding: Forwarding) {
    this.#call = call
    this.#req = req
    this.#res = res
    this.#forwarding = forwarding
    this.#upgrade = upgradeOf(req)
    this.#stopWatchingUnread = this.#upgrade ? watchUnread(this.#upgrade.socket) : () => {}
    call.onLeave(() => {
      if (this.#exchange && !this.#exchange.end) this.departure = new Departure(this.#exchange, ABORT)
    })
  }

  /** Ends what goes on beside the attempts. */
  close(): void {
    this.#stopWatchingUnread()
  }

  get record(): AttemptRecord | undefined {
    return this.#exchange?.record
  }

  async attempt(candidate: Candidate, pass: CircuitPass): Promise<ExchangeEnd> {
    const exchange = new ProxiedExchange(candidate, this.#req)
    this.#exchange = exchange
    const ended = exchange.ended()
    try {
      await this.#answer(exchange, pass, await this.#open(exchange, candidate.line))
    } catch (error) {
      this.#error = error
    }
    // Whatever was thrown, such as by the settlement: nothing of the exchange outlives its call.
    exchange.abandon()
    return ended
  }

  /** @throws {GatewayError} what the caller is answered; after the first byte, why the answer is cut off. */
  finish(end: ExchangeEnd): undefined {
    if (this.#error !== undefined) throw this.#error
    if (end.kind === 'failed') {
      const { code } = end.failure
      if (!this.#upgrade) throw new GatewayError(code, { message: BROKEN_OFF })
      this.#call.outcome = { status: 101, errorCode: code, finish: 'interrupted' }
    } else if (end.kind === 'served' && !this.#upgrade) this.#res.end()
  }

  #open(exchange: ProxiedExchange, line: Line): Promise<Opening> {
    const req = this.#req
    const target: UpstreamTarget = {
      origin: line.origin,
      path: line.basePath + this.#forwarding.path,
      method: req.method ?? 'GET',
      headers: this.#upgrade ? handshakeHeaders(req) : requestHeaders(req),
      lineHeaders: lineHeaders(line, req.headers, this.#forwarding.headers),
    }
    return this.#upgrade ? exchange.upgrade(target) : exchange.send(target)
  }

  #answer(exchange: ProxiedExchange, pass: CircuitPass, opening: Opening): Promise<void> | undefined {
    switch (opening.kind) {
      case 'ended':
        return undefined
      case 'refused':
        return this.#refuse(exchange, opening.response, opening.body)
      case 'switched':
        return this.#goOnSwitched(exchange, pass, opening)
      case 'answered':
        return this.#passBack(exchange, pass, opening.response)
    }
  }

  /** An answer that is worded as an error of the gateway's own. */
  async #refuse(
    exchange: ProxiedExchange,
    { statusCode: status = 0, headers }: IncomingMessage,
    body: Promise<unknown>,
  ): Promise<void> {
    const said = await body
    if (status >= 300) return exchange.breakOff(failureOfRelayed(status, headers, said))
    exchange.committed = true
    exchange.breakOff(NOT_SWITCHED)
    throw noWebSocket()
  }

  /** Passes an answer back, or words what it says of an error. */
  async #passBack(exchange: ProxiedExchange, pass: CircuitPass, response: IncomingMessage): Promise<void> {
    const status = response.statusCode ?? 0
    const manner = mannerOf(status)
    if (manner === 'error') return this.#refuse(exchange, response, readError(exchange, response))
    this.#commit(exchange, pass)
    await this.#settle(exchange, { status, errorCode: null, finish: 'completed' }, manner === 'whole')
    if (this.#call.left) return
    this.#writeHead(status, response, manner === 'whole')
    if (manner === 'bare') exchange.complete()
    else await relayAnswer(exchange, response, this.#res)
  }

  /** The line has done what it should; from here on the caller is told what becomes of it. */
  #commit(exchange: ProxiedExchange, pass: CircuitPass): void {
    pass.success()
    exchange.committed = true
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
    exchange: ProxiedExchange,
    pass: CircuitPass,
    { response, socket }: Extract<Opening, { kind: 'switched' }>,
  ): Promise<void> {
    const upgrade = this.#upgrade as Upgrade
    this.#commit(exchange, pass)
    await this.#settle(exchange, { status: 101, errorCode: null, finish: 'completed' }, true)
    if (this.#call.left) return
    const { id, protocol } = this.#call
    const handshake = handshakeText(response.headers, {
      // What the chain has set on the response, such as the limits, goes with it.
      ...this.#res.getHeaders(),
      ...Object.fromEntries(protocol.requestIdHeaders.map((name) => [name, id])),
    })
    this.#res.detachSocket(upgrade.socket)
    this.#stopWatchingUnread()
    await relaySocket(exchange, upgrade, socket, handshake)
  }

  /**
   * Charges a success, durably, before its head goes out: from then on a caller may have what it asked for.
   *
   * @throws {GatewayError} where that cannot be done in time.
   */
  async #settle(exchange: ProxiedExchange, outcome: CallOutcome, success: boolean): Promise<void> {
    const { price } = this.#forwarding
    if (!success || !price) return
    // It is not the line that is waited for.
    exchange.pauseClocks()
    this.#call.usage = NOTHING_USED
    this.#call.servedBy = { line: exchange.target.line.id, price }
    // How it ends is known only later, so that its log entry is not written with its charge.
    if (this.#call.entryBy === 'ledger') this.#call.entryBy = 'writer'
    await this.#call.settle({ outcome, unsent: null })
    this.#call.prove()
  }
}
