import type { IncomingMessage, ServerResponse } from 'node:http'
import { type CallOutcome, type OpenCall, type Upgrade, upgradeOf } from '../../core/call/index.ts'
import { http } from '../../core/call/node-http.ts'
import type { Line } from '../../core/catalog/index.ts'
import { GatewayError } from '../../core/errors/index.ts'
import { CallerDisconnect } from '../../routing/attempt/caller-disconnect.ts'
import { type AttemptEnd, malformed } from '../../routing/attempt/failure.ts'
import { pathOn } from '../../routing/attempt/upstream-path.ts'
import type { Candidate } from '../../routing/candidates/candidate.ts'
import type { LineSigner, SignedHeaders } from '../../routing/credentials/signer.ts'
import { signedInTime } from '../../routing/credentials/signing-transport.ts'
import type { AttemptContext, AttemptResult } from '../../routing/try-candidates.ts'
import { holdsSecret, mayHoldSecret, readBegin } from './answer-secrets.ts'
import { PaidMinutes, settleAtPrice } from './charges.ts'
import type { Forwarding } from './forwarding.ts'
import { agentOf } from './line-agent.ts'
import { type Opening, ProxiedExchange, relayAnswer, type UpstreamTarget } from './proxied-exchange.ts'
import {
  answerHeaders,
  describeNone,
  describeRead,
  handshakeHeaders,
  handshakeText,
  hasBody,
  lineHeaders,
  requestHeaders,
} from './relay-headers.ts'
import {
  failureOfRelayed,
  NOT_SWITCHED,
  noWebSocket,
  readAnswer,
  readError,
  readFirstEvent,
  relayModeOf,
} from './relayed-answer.ts'
import { RelayedSocket, watchUnread } from './relayed-socket.ts'

const BROKEN_OFF = 'The upstream ended the answer early; it is incomplete.'

/** The codes of close frames: the session is refused by key or money, or the gateway cannot go on with it. */
const REFUSED = 1008
const FAILED = 1011

/**
 * One call whose bodies are passed on unread. Another line is tried only if no connection could be made, because
 * nothing of the body has been read then.
 */
export class ForwardedCall {
  readonly #call: OpenCall
  readonly #req: IncomingMessage
  readonly #res: ServerResponse
  readonly #forwarding: Forwarding
  readonly #upgrade: Upgrade | undefined
  readonly #stopWatchingUnread: () => void
  #minutes: PaidMinutes | undefined
  #exchange: ProxiedExchange | undefined
  #disconnect: CallerDisconnect | undefined
  /** An error that ends the call in place of the line's failure. */
  #error: unknown

  constructor(call: OpenCall, req: IncomingMessage, res: ServerResponse, forwarding: Forwarding) {
    this.#call = call
    this.#req = req
    this.#res = res
    this.#forwarding = forwarding
    this.#upgrade = upgradeOf(req)
    this.#stopWatchingUnread = this.#upgrade ? watchUnread(this.#upgrade.socket) : () => {}
    const { signal } = forwarding.aborter
    signal.addEventListener('abort', () => this.#endEarly(signal.reason as GatewayError))
    call.onLeave(() => {
      const exchange = this.#exchange
      if (!exchange || exchange.end) return
      // A relayed answer cannot be metered, so it is aborted at once. But the line finishes work of which it has the whole request:
      // its answer is charged, and names what was made.
      const worksUnseen =
        forwarding.owned?.hasLastingEffect === true && exchange.uploaded && !exchange.committed
      const { totalMs: drainMs } = exchange.target.line.timeouts
      this.#disconnect = new CallerDisconnect({ onDisconnect: 'abort', drainMs }, exchange, worksUnseen)
    })
  }

  /** Ends what runs beside the attempts. */
  close(): void {
    this.#minutes?.close()
    this.#stopWatchingUnread()
  }

  async attempt(candidate: Candidate, context: AttemptContext): Promise<AttemptResult> {
    const exchange = new ProxiedExchange(candidate, this.#req, this.#forwarding.body)
    this.#exchange = exchange
    if (this.#error !== undefined) exchange.abandon()
    try {
      await this.#answer(exchange, context, await this.#open(exchange, candidate))
    } catch (error) {
      this.#error = error
    }
    // Nothing of the exchange outlives its call, whatever was thrown.
    exchange.abandon()
    this.#error ??= exchange.refusal
    const end = await exchange.ended
    return { ...end, record: exchange.record, disconnect: this.#disconnect?.traceOf(end) }
  }

  /** @throws {GatewayError} the answer to the caller, or after the first byte the reason why the answer is cut off. */
  finish(end: AttemptEnd): void {
    if (this.#upgrade?.session && this.#error instanceof GatewayError) {
      this.#call.outcome = { status: 101, errorCode: this.#error.code, finish: 'interrupted' }
      return
    }
    if (this.#error !== undefined) throw this.#error
    if (end.kind === 'failed') {
      const { code } = end.failure
      if (!this.#upgrade) throw new GatewayError(code, { message: BROKEN_OFF })
      this.#call.outcome = { status: 101, errorCode: code, finish: 'interrupted' }
    } else if (end.kind === 'served' && !this.#upgrade && !this.#call.left) this.#res.end()
  }

  /** Ends the call before its answer has ended. The close frame of a WebSocket has the reason. */
  #endEarly(error: GatewayError): void {
    const session = this.#upgrade?.session
    if (this.#error !== undefined || this.#exchange?.end) return
    this.#error = error
    if (session) session.close(error.status < 500 ? REFUSED : FAILED, error.code)
    else this.#exchange?.abandon()
  }

  async #open(exchange: ProxiedExchange, { line, state: { signer } }: Candidate): Promise<Opening> {
    const target = this.#targetOn(line)
    const send = (): Promise<Opening> => (this.#upgrade ? exchange.upgrade(target) : exchange.send(target))
    if (!signer) return send()
    if (signer.needsBody && hasBody(this.#req)) {
      exchange.breakOff({ ...malformed(UNSIGNABLE), fault: null })
      return { kind: 'ended' }
    }
    const signed = await signedTarget(signer, line, target).catch((error: Error) => exchange.failed(error))
    if (!signed || exchange.end) return { kind: 'ended' }
    Object.assign(target.lineHeaders, signed)
    const opening = await send()
    // The body has been read: only the next request can be signed anew.
    if (exchange.status === 401) signer.refused?.(signed)
    return opening
  }

  #targetOn(line: Line): UpstreamTarget {
    const req = this.#req
    return {
      origin: line.origin,
      path: pathOn(line, this.#forwarding.path),
      method: req.method ?? 'GET',
      headers: this.#upgrade ? handshakeHeaders(req) : requestHeaders(req),
      lineHeaders: lineHeaders(line, req.headers, this.#forwarding.headers),
      agent: agentOf(line),
    }
  }

  #answer(exchange: ProxiedExchange, context: AttemptContext, opening: Opening): Promise<void> | undefined {
    switch (opening.kind) {
      case 'ended':
        return undefined
      case 'refused':
        return this.#refuse(exchange, opening.response, opening.body)
      case 'switched':
        return this.#goOnSwitched(exchange, context, opening)
      case 'answered':
        return this.#passBack(exchange, context, opening.response)
    }
  }

  /** Replaces the line's answer by an error of the gateway. */
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

  /** Passes the line's answer back, or replaces it by an error of the gateway. */
  async #passBack(
    exchange: ProxiedExchange,
    context: AttemptContext,
    response: IncomingMessage,
  ): Promise<void> {
    const status = response.statusCode ?? 0
    const mode = relayModeOf(status)
    if (mode === 'error') return this.#refuse(exchange, response, readError(exchange, response))
    const { owned, withhold } = this.#forwarding
    const type = mode === 'whole' ? response.headers['content-type'] : undefined
    const answer = owned?.mustRead(type) ? await readAnswer(exchange, response) : undefined
    const body = answer && owned?.forCaller(answer)
    const event = owned?.mustReadEvent(type) ? await readFirstEvent(exchange, response) : undefined
    const isSearched = withhold !== undefined && mayHoldSecret(type)
    const begin = isSearched && !body ? await readBegin(exchange, response) : undefined
    if (exchange.end) return
    const searched = body ?? begin
    const encoding = body ? undefined : response.headers['content-encoding']
    if (isSearched && searched && holdsSecret(searched, encoding, exchange.target.line.apiKey)) {
      this.#commit(exchange, context)
      throw withhold()
    }
    this.#commit(exchange, context)
    // The line is not waited for until its answer is relayed.
    exchange.pauseClocks()
    const named = body ?? event?.data
    const lineId = exchange.target.line.id
    if (named) await owned?.read(lineId, named)
    const location = await owned?.readLocation(lineId, response.headers.location)
    if (mode === 'whole') await owned?.end()
    await this.#settle(exchange, { status, errorCode: null, finish: 'completed' }, mode === 'whole')
    if (this.#call.left) exchange.complete()
    // A head that is charged goes out although the line has broken off meanwhile, as if it did so a moment later.
    const isCut = exchange.hasFailed && this.#call.servedBy !== null
    if (exchange.end && !isCut) return
    if (location !== undefined) this.#res.setHeader('location', location)
    this.#writeHead(status, response, mode === 'whole', body)
    const read = searched ?? event?.bytes
    if (read && read.length > 0) this.#res.write(read)
    if (isCut) return
    // It was paused behind what was read.
    if (event ?? begin) response.resume()
    if (mode === 'bare' || body || response.readableEnded) exchange.complete()
    else await relayAnswer(exchange, response, this.#res)
  }

  /** Reports a success to the circuit. From here on no other line can be tried. */
  #commit(exchange: ProxiedExchange, context: AttemptContext): void {
    context.report.success()
    exchange.committed = true
  }

  #writeHead(status: number, { headers }: IncomingMessage, withBody: boolean, read?: Buffer): void {
    const kept = answerHeaders(headers)
    if (!withBody) describeNone(kept, status)
    if (read) describeRead(kept, read)
    this.#res.writeHead(status, http.STATUS_CODES[status], kept)
    // Without a body the head is the whole answer, which its end sends.
    if (withBody && kept['content-length'] !== '0') this.#res.flushHeaders()
  }

  /** Answers the caller's handshake after the line's, and relays both directions until one side ends. */
  async #goOnSwitched(
    exchange: ProxiedExchange,
    context: AttemptContext,
    { response, socket }: Extract<Opening, { kind: 'switched' }>,
  ): Promise<void> {
    const upgrade = this.#upgrade as Upgrade
    this.#commit(exchange, context)
    await this.#settle(exchange, { status: 101, errorCode: null, finish: 'completed' }, true)
    // A line that has broken off meanwhile has switched, and its caller learns of both.
    if (this.#call.left || (exchange.end && !exchange.hasFailed)) return
    const { id, protocol } = this.#call
    const handshake = handshakeText(response.headers, {
      // The headers that the chain has set on the response, such as the limits.
      ...this.#res.getHeaders(),
      ...Object.fromEntries(protocol.requestIdHeaders.map((name) => [name, id])),
    })
    this.#res.detachSocket(upgrade.socket)
    this.#stopWatchingUnread()
    const relayed = new RelayedSocket(exchange, upgrade, socket)
    upgrade.session = relayed
    await relayed.relay(handshake, upgrade.head)
  }

  /**
   * Charges a success durably before its head goes out: from then on the caller may have the answer.
   *
   * @throws {GatewayError} if that does not succeed in time.
   */
  async #settle(exchange: ProxiedExchange, outcome: CallOutcome, success: boolean): Promise<void> {
    const { terms, aborter } = this.#forwarding
    if (!success || !terms) return
    await settleAtPrice(this.#call, { line: exchange.target.line.id, ...terms }, outcome)
    if (!this.#call.left) this.#minutes = new PaidMinutes(this.#call, terms.price, aborter.end)
  }
}

const UNSIGNABLE = 'the line wants whole bodies signed, and this one is passed on unread'

/** Returns the credentials of a request whose body is passed on unread. Rejects with an `UnsentError`. */
function signedTarget(
  signer: LineSigner,
  line: Line,
  { method, path, headers, lineHeaders }: UpstreamTarget,
): Promise<SignedHeaders> {
  const request = {
    method,
    url: line.origin + path,
    headers: { ...headers, ...lineHeaders },
    body: undefined,
  }
  return signedInTime(signer, line, request)
}
