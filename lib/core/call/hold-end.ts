import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { bytesOf, sendMost } from './last-bytes.ts'

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

/**
 * Holds back the end of an answer until everything that must be durable is. Meanwhile the answer counts as complete:
 * whatever the handler or an error handler writes then is not part of it.
 *
 * @param next receives the error that is answered instead: Express's `next`.
 */
export function holdEnd(res: HeldAnswer, holder: EndHolder, next: (error: unknown) => void): void {
  const { end, write } = res
  // Only the first holder reaches the answer itself, behind all others.
  const isFirst = res[LAST_BYTE] === undefined
  if (isFirst) res[LAST_BYTE] = nothing
  if (holder.onSend) res[WATCHED] = true
  let isOpen = true
  let isWaiting = false
  let sent = 0
  /** Set once the answer is whole by the length that it declared: before its end, or `ended` behind it. */
  let byLength: 'open' | 'ended' | undefined

  function heldEnd(this: ServerResponse, ...given: EndArguments): ServerResponse {
    if (!isOpen) {
      if (!isWaiting) end.apply(res, given)
      else if (byLength) byLength = 'ended'
      return res
    }
    holder.onSend?.(given[0], given[1])
    isOpen = false
    let waiting: Promise<void> | undefined
    try {
      waiting = holder.beforeEnd()
    } catch (error) {
      fail(error)
      return res
    }
    if (waiting) hold(waiting, () => hand(given), fail)
    else hand(given)
    return res
  }

  function hand(given: EndArguments): void {
    if (isFirst && (byLength || res[LAST_BYTE] !== nothing)) handLast(given)
    else if (byLength) finish(given)
    else end.apply(res, given)
  }

  function handLast(given: EndArguments): void {
    const { rest, flowing } = sendMost(res, write, given)
    const run = res[LAST_BYTE] as BeforeLastByte
    const waiting = flowing ? flowing.then(run) : run()
    const last = (): void => finish(rest)
    if (waiting) hold(waiting, last, last)
    else last()
  }

  /** Passes the last bytes on. Of a declared length they are a write: whoever gives the answer ends it. */
  function finish(given: EndArguments): void {
    if (!byLength) {
      end.apply(res, given)
      return
    }
    write.apply(res, given as Parameters<ServerResponse['write']>)
    if (byLength === 'ended') end.apply(res, [] as unknown as EndArguments)
  }

  function fail(error: unknown): void {
    byLength = undefined
    next(error)
  }

  function hold(waiting: Promise<void>, then: () => void, otherwise: (error: unknown) => void): void {
    isWaiting = true
    const over = (): void => {
      isWaiting = false
    }
    void waiting.then(over, over)
    holdBack(res, waiting, then, otherwise)
  }

  // Not assigned as literals: V8 would allocate those as old objects, which keep the whole call alive until a full
  // collection.
  const heldWrite = function (this: ServerResponse, ...given: Parameters<ServerResponse['write']>): boolean {
    // Whatever comes behind the declared length is not part of the answer.
    if (byLength) return true
    if (!isOpen) return write.apply(this, given)
    const length = res[WATCHED] ? res.getHeader('content-length') : undefined
    if (length !== undefined) sent += bytesOf(given).byteLength
    // The caller has the whole answer with these bytes, although its end is still to come.
    if (sent > 0 && sent >= Number(length)) {
      byLength = 'open'
      // Not res.end(): another library in between may take that for the end itself.
      heldEnd.apply(res, given as EndArguments)
      return true
    }
    holder.onSend?.(given[0], given[1])
    return write.apply(this, given)
  }
  res.write = heldWrite as ServerResponse['write']
  res.end = heldEnd as ServerResponse['end']
}

/**
 * Runs a function before the last byte of an answer goes out, whatever that is: the end of an answer, or the last byte of the
 * length that it has declared. Nearly all other bytes have gone out then.
 *
 * @param run must not reject.
 */
export function holdLastByte(res: HeldAnswer, run: BeforeLastByte): void {
  holdEnd(res, NOTHING_BEFORE, nothing)
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
  res: HeldAnswer,
  waiting: Promise<void>,
  end: () => void,
  next: (error: unknown) => void,
): void {
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
    end()
  }
  const handOther = (error: unknown): void => {
    head.melt()
    release()
    next(error)
  }
  waiting.then(hand, handOther)
}

/** The status and headers of an answer at the time when it was ended. */
class FrozenHead {
  readonly #res: ServerResponse
  readonly #statusCode: number
  readonly #statusMessage: string
  readonly #headers: ReturnType<ServerResponse['getHeaders']>
  readonly #writeHead: ServerResponse['writeHead']

  constructor(res: ServerResponse) {
    this.#res = res
    this.#statusCode = res.statusCode
    this.#statusMessage = res.statusMessage
    this.#headers = res.getHeaders()
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
    for (const name of res.getHeaderNames()) if (!(name in this.#headers)) res.removeHeader(name)
    for (const [name, value] of Object.entries(this.#headers)) {
      if (value !== undefined && res.getHeader(name) !== value) res.setHeader(name, value)
    }
  }
}
