import type { OutgoingHttpHeader, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { bytesOf, sendMost } from './last-bytes.ts'
import { http } from './node-http.ts'

type EndArguments = Parameters<ServerResponse['end']>

/** Runs before the last byte of an answer goes out. Returns what it waits for, which never rejects; undefined if nothing. */
type BeforeLastByte = () => Promise<void> | undefined

const LAST_BYTE = Symbol.for('express-model-gateway last byte')
/** Set once a holder receives what is sent: then the end of a declared length is the end of the answer to all holders. */
const WATCHED = Symbol.for('express-model-gateway watched')
/** Set while an answer has been given whose end is held back. */
const HELD_BACK = Symbol.for('express-model-gateway held back')

type HeldAnswer = ServerResponse & {
  [HELD_BACK]?: boolean
  [LAST_BYTE]?: BeforeLastByte
  [WATCHED]?: boolean
}

/** Whether an answer has been given whose end {@link holdEnd} holds back: what goes wrong behind it is not part of it. */
export function isHeldBack(res: HeldAnswer): boolean {
  return res[HELD_BACK] === true
}

/** Holds back the end of an answer. */
export interface EndHolder {
  /** Returns what the end has to wait for; undefined if nothing. If it throws or rejects, the error is answered instead. */
  beforeEnd(): Promise<void> | undefined
  /** Receives what is sent. */
  onSend?(chunk: unknown, encoding: unknown): void
}

/** What {@link holdEnd} knows of an answer, for one holder of its end. */
interface Held {
  readonly res: HeldAnswer
  readonly end: ServerResponse['end']
  readonly write: ServerResponse['write']
  readonly next: (error: unknown) => void
  /** Only the first holder reaches the answer itself, behind all others. */
  readonly isFirst: boolean
  isOpen: boolean
  isWaiting: boolean
  /** How many bytes were written. */
  sent: number
  /** Set once the answer is whole by the length that it declared: before its end, or `ended` behind it. */
  byLength: 'open' | 'ended' | undefined
}

/**
 * Holds back the end of an answer until everything that must be durable is. Meanwhile the answer counts as complete:
 * whatever the handler or an error handler writes then is not part of it.
 *
 * @param next receives the error that is answered instead: Express's `next`.
 */
export function holdEnd(res: HeldAnswer, holder: EndHolder, next: (error: unknown) => void): void {
  const { end, write } = res
  const isFirst = res[LAST_BYTE] === undefined
  if (isFirst) res[LAST_BYTE] = nothing
  if (holder.onSend) res[WATCHED] = true
  const held: Held = {
    res,
    end,
    write,
    next,
    isFirst,
    isOpen: true,
    isWaiting: false,
    sent: 0,
    byLength: undefined,
  }
  // Not assigned as literals: V8 would allocate those as old objects, which keep the whole call alive until a full
  // collection.
  const heldEnd = function (this: ServerResponse, ...given: EndArguments): ServerResponse {
    if (!held.isOpen) {
      if (!held.isWaiting) held.end.apply(held.res, given)
      else if (held.byLength) held.byLength = 'ended'
      return held.res
    }
    const { statusCode: status, headersSent } = held.res
    const [chunk] = given as readonly unknown[]
    // To Node, whatever is falsy is no body.
    const isNone = !chunk || typeof chunk === 'function'
    const isChunk = isNone || typeof chunk === 'string' || chunk instanceof Uint8Array
    // Node throws, before anything is recorded or charged for an answer that cannot be sent.
    if (!isChunk || !(headersSent || (status >= 100 && status <= 999)))
      return http.ServerResponse.prototype.end.apply(held.res, given)
    holder.onSend?.(chunk, given[1])
    held.isOpen = false
    let waiting: Promise<void> | undefined
    try {
      waiting = holder.beforeEnd()
    } catch (error) {
      fail(held, error)
      return held.res
    }
    if (!waiting) hand(held, given)
    else hold(held, waiting, () => hand(held, given), fail.bind(undefined, held))
    return held.res
  }
  const heldWrite = function (this: ServerResponse, ...given: Parameters<ServerResponse['write']>): boolean {
    // Whatever comes behind the declared length is not part of the answer.
    if (held.byLength) return true
    if (!held.isOpen) return held.write.apply(this, given)
    const length = held.res[WATCHED] ? held.res.getHeader('content-length') : undefined
    if (length !== undefined) held.sent += bytesOf(given).byteLength
    // The caller has the whole answer with these bytes, although its end is still to come.
    if (held.sent > 0 && held.sent >= Number(length)) {
      held.byLength = 'open'
      // Not res.end(): another library in between may take that for the end itself.
      heldEnd.apply(held.res, given as EndArguments)
      return true
    }
    const chunk: unknown = given[0]
    if (typeof chunk === 'string' || chunk instanceof Uint8Array) holder.onSend?.(chunk, given[1])
    return held.write.apply(this, given)
  }
  res.write = heldWrite as ServerResponse['write']
  res.end = heldEnd as ServerResponse['end']
}

function hand(held: Held, given: EndArguments): void {
  const { res, byLength, isFirst } = held
  if (isFirst && (byLength || res[LAST_BYTE] !== nothing)) handLast(held, given)
  else if (byLength) finish(held, given)
  else held.end.apply(res, given)
}

function handLast(held: Held, given: EndArguments): void {
  const { rest, flowing } = sendMost(held.res, held.write, given)
  const run = held.res[LAST_BYTE] as BeforeLastByte
  const waiting = flowing ? flowing.then(run) : run()
  const last = (): void => finish(held, rest)
  if (waiting) hold(held, waiting, last, last)
  else last()
}

/** Passes the last bytes on. Of a declared length they are a write: whoever gives the answer ends it. */
function finish({ res, byLength, write, end }: Held, given: EndArguments): void {
  if (!byLength) {
    end.apply(res, given)
    return
  }
  write.apply(res, given as Parameters<ServerResponse['write']>)
  if (byLength === 'ended') end.apply(res, [] as unknown as EndArguments)
}

function fail(held: Held, error: unknown): void {
  held.byLength = undefined
  held.next(error)
}

function hold(
  held: Held,
  waiting: Promise<void>,
  then: () => void,
  otherwise: (error: unknown) => void,
): void {
  held.isWaiting = true
  const over = (): void => {
    held.isWaiting = false
  }
  void waiting.then(over, over)
  holdBack(held, waiting, then, otherwise)
}

/**
 * Runs a function before the last byte of an answer goes out, whatever that is: the end of an answer, or the last byte of the
 * length that it has declared. Nearly all other bytes have gone out then.
 *
 * @param run must not reject.
 * @param next receives the error if the answer cannot be sent: Express's `next`.
 */
export function holdLastByte(res: HeldAnswer, run: BeforeLastByte, next: (error: unknown) => void): void {
  holdEnd(res, NOTHING_BEFORE, next)
  res[LAST_BYTE] = run
}

/** The same for a connection in another protocol. */
export function holdLastByteOf(socket: Socket, run: BeforeLastByte): void {
  const { end } = socket
  const heldEnd = function (this: Socket, ...given: Parameters<Socket['end']>): Socket {
    const waiting = run()
    if (waiting) void waiting.then(() => end.apply(socket, given))
    else end.apply(socket, given)
    return socket
  }
  socket.end = heldEnd as Socket['end']
}

function nothing(): undefined {}

/** It watches for the last byte of a declared length. */
const NOTHING_BEFORE: EndHolder = { beforeEnd: nothing, onSend: nothing }

function holdBack(
  held: Held,
  waiting: Promise<void>,
  end: () => void,
  otherwise: (error: unknown) => void,
): void {
  const { res } = held
  res[HELD_BACK] = true
  const head = new FrozenHead(res)
  const openWrite = res.write
  const noWrite: ServerResponse['write'] = () => true
  res.write = noWrite
  const release = (): void => {
    res[HELD_BACK] = false
    res.write = openWrite
  }
  const hand = (): void => {
    release()
    head.restore()
    try {
      end()
    } catch (error) {
      // Nobody who called it is there any more to take the error.
      fail(held, error)
    }
  }
  const handOther = (error: unknown): void => {
    head.melt()
    release()
    otherwise(error)
  }
  waiting.then(hand, handOther)
}

/** The status and headers of an answer at the time when it was ended. */
class FrozenHead {
  readonly #res: ServerResponse
  readonly #statusCode: number
  readonly #statusMessage: string
  readonly #names: readonly string[]
  readonly #values: readonly (OutgoingHttpHeader | undefined)[]
  readonly #writeHead: ServerResponse['writeHead']

  constructor(res: ServerResponse) {
    this.#res = res
    this.#statusCode = res.statusCode
    this.#statusMessage = res.statusMessage
    this.#names = res.getHeaderNames()
    this.#values = this.#names.map((name) => res.getHeader(name))
    this.#writeHead = res.writeHead
    const keptHead: ServerResponse['writeHead'] = () => res
    res.writeHead = keptHead
  }

  /** Lets another answer be given. */
  melt(): void {
    this.#res.writeHead = this.#writeHead
  }

  /** Undoes what was changed meanwhile. */
  restore(): void {
    this.melt()
    const res = this.#res
    res.statusCode = this.#statusCode
    if (res.headersSent) return
    res.statusMessage = this.#statusMessage
    for (const name of res.getHeaderNames()) if (!this.#names.includes(name)) res.removeHeader(name)
    for (const [i, value] of this.#values.entries()) {
      const name = this.#names[i] as string
      if (value !== undefined && res.getHeader(name) !== value) res.setHeader(name, value)
    }
  }
}
