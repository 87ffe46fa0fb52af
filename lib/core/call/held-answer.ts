import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { AnswerFilter } from './answer-filter.ts'
import { FilteredAnswer } from './filtered-answer.ts'
import { http } from './node-http.ts'

/*
 * Node has no public interface to hold back the end of a response. Therefore this file replaces the methods `write`, `end`
 * and `writeHead` of single responses, as `compression` and `express-session` do. No other file does.
 */

type EndArguments = Parameters<ServerResponse['end']>
type WriteArguments = Parameters<ServerResponse['write']>

/** Runs before the last byte of an answer goes out. Returns what it waits for, which never rejects; undefined if nothing. */
type BeforeLastByte = () => Promise<void> | undefined

/** The state that all holders of an answer share. */
interface SharedState {
  /** Whether an answer has been given whose end is held back. */
  isHeldBack: boolean
  /** Whether the end of a declared length is the end of the answer to all holders: one receives what is sent, or its last byte. */
  isWatched: boolean
  beforeLastByte: BeforeLastByte | undefined
  /** Checks what is sent before any holder receives it; undefined if nothing does. */
  filtered: FilteredAnswer | undefined
  /** The holder that was added last: it receives first what is sent. */
  outermost: unknown
  /** The methods of the response that pass what is written through the filter, before that holder; undefined if nothing does. */
  filtering: Pick<ServerResponse, 'write' | 'end'> | undefined
}

/** Of the whole process: two copies of this package may hold the same answer. */
const SHARED = Symbol.for('express-model-gateway held answer')

type HeldAnswer = ServerResponse & { [SHARED]?: SharedState }

/** Whether an answer has been given whose end {@link holdEnd} holds back: what goes wrong behind it is not part of it. */
export function isHeldBack(res: HeldAnswer): boolean {
  return res[SHARED]?.isHeldBack === true
}

/** Holds back the end of an answer. */
export interface EndHolder {
  /** Returns what the end has to wait for; undefined if nothing. If it throws or rejects, the error is answered instead. */
  beforeEnd?(): Promise<void> | undefined
  /** Receives what is sent. */
  onSend?(chunk: unknown, encoding: unknown): void
}

/** The end of an answer, as one holder holds it back. */
interface HeldEnd {
  readonly res: ServerResponse
  readonly shared: SharedState
  readonly write: ServerResponse['write']
  readonly end: ServerResponse['end']
  /** Receives the error that is answered instead. */
  readonly next: (error: unknown) => void
  /** Whether it reaches the answer itself, behind all other holders. */
  readonly isFirst: boolean
  state: 'open' | 'waiting' | 'released'
  sentBytes: number
  /** Set once the answer is whole by the length that it declared: before its end, or `ended` behind it. */
  byLength: 'open' | 'ended' | undefined
}

/**
 * Holds back the end of an answer until everything that must be durable is. Meanwhile the answer counts as complete:
 * writes of the handler or of an error handler are not part of it.
 *
 * @param next receives the error that is answered instead: Express's `next`.
 */
export function holdEnd(res: HeldAnswer, holder: EndHolder, next: (error: unknown) => void): void {
  const { end, write } = res
  const isFirst = res[SHARED] === undefined
  const shared: SharedState = res[SHARED] ?? {
    isHeldBack: false,
    isWatched: false,
    beforeLastByte: undefined,
    filtered: undefined,
    outermost: undefined,
    filtering: undefined,
  }
  res[SHARED] = shared
  shared.outermost = holder
  if (holder.onSend) shared.isWatched = true
  const held: HeldEnd = {
    res,
    shared,
    write,
    end,
    next,
    isFirst,
    state: 'open',
    sentBytes: 0,
    byLength: undefined,
  }

  // They are not assigned as literals: V8 allocates those as old objects, which keep the whole call alive until the next full
  // collection.
  const heldEnd = (...given: EndArguments): ServerResponse => {
    if (held.state !== 'open') {
      if (held.state === 'released') end.apply(res, given)
      else if (held.byLength) held.byLength = 'ended'
      return res
    }
    const [chunk] = given as readonly unknown[]
    // Node throws, before anything is recorded or charged for an answer that cannot be sent.
    if (!mayEndWith(chunk) || !(res.headersSent || (res.statusCode >= 100 && res.statusCode <= 999)))
      return http.ServerResponse.prototype.end.apply(res, given)
    holder.onSend?.(chunk, given[1])
    held.state = 'released'
    let waiting: Promise<void> | undefined
    try {
      waiting = holder.beforeEnd?.()
    } catch (error) {
      fail(held, error)
      return res
    }
    if (waiting)
      waitFor(
        held,
        waiting,
        () => passOn(held, given),
        (error) => fail(held, error),
      )
    else passOn(held, given)
    return res
  }
  const heldWrite = (...given: WriteArguments): boolean => {
    // Bytes behind the declared length are not part of the answer.
    if (held.byLength) return true
    if (held.state !== 'open') return write.apply(res, given)
    const length = shared.isWatched ? res.getHeader('content-length') : undefined
    if (length !== undefined) held.sentBytes += bytesOf(given).byteLength
    // The caller has the whole answer with these bytes, although its end is still to come.
    if (held.sentBytes > 0 && held.sentBytes >= Number(length)) {
      held.byLength = 'open'
      // Not res.end(): another library in between may take that for the end itself.
      heldEnd(...(given as EndArguments))
      return true
    }
    const chunk: unknown = given[0]
    if (isBody(chunk)) holder.onSend?.(chunk, given[1])
    return write.apply(res, given)
  }
  res.write = heldWrite as ServerResponse['write']
  res.end = heldEnd as ServerResponse['end']
  if (shared.filtered) filterFirst(res, shared)
}

/**
 * Reports the head of an answer when it is written.
 *
 * @param onHead receives the arguments of `writeHead`.
 * @param onRefused runs if Node refuses them and nothing is sent: another head follows.
 */
export function watchHead(
  res: ServerResponse,
  onHead: (given: readonly unknown[]) => void,
  onRefused: () => void,
): void {
  const { writeHead } = res
  const watched = (...given: unknown[]): ServerResponse => {
    onHead(given)
    try {
      return (writeHead as (...all: unknown[]) => ServerResponse).apply(res, given)
    } catch (error) {
      if (!res.headersSent) onRefused()
      throw error
    }
  }
  res.writeHead = watched as ServerResponse['writeHead']
}

function fail(held: HeldEnd, error: unknown): void {
  held.byLength = undefined
  held.next(error)
}

function passOn(held: HeldEnd, given: EndArguments): void {
  const { beforeLastByte } = held.shared
  if (!held.isFirst || (!held.byLength && !beforeLastByte)) {
    finish(held, given)
    return
  }
  const { rest, drained } = sendMost(held.res, held.write, given)
  const waiting = drained ? drained.then(beforeLastByte) : beforeLastByte?.()
  const last = (): void => finish(held, rest)
  if (waiting) waitFor(held, waiting, last, last)
  else last()
}

/** Passes the last bytes on. Of a declared length they are a write, and the handler ends the answer. */
function finish({ res, write, end, byLength }: HeldEnd, given: EndArguments): void {
  if (!byLength) {
    end.apply(res, given)
    return
  }
  write.apply(res, given as WriteArguments)
  if (byLength === 'ended') end.apply(res, [] as unknown as EndArguments)
}

function waitFor(
  held: HeldEnd,
  waiting: Promise<void>,
  then: () => void,
  otherwise: (error: unknown) => void,
): void {
  const { res, shared } = held
  held.state = 'waiting'
  shared.isHeldBack = true
  const head = freezeHead(res)
  const openWrite = res.write
  res.write = ignoreWrite as ServerResponse['write']
  const release = (): void => {
    held.state = 'released'
    shared.isHeldBack = false
    res.write = openWrite
  }
  waiting.then(
    () => {
      release()
      head.restore()
      try {
        then()
      } catch (error) {
        // The function that ended the answer has returned long ago.
        fail(held, error)
      }
    },
    (error: unknown) => {
      head.unfreeze()
      release()
      otherwise(error)
    },
  )
}

/** Passes what is written through the filter of an answer, before its outermost holder receives it. */
function filterFirst(res: HeldAnswer, shared: SharedState): void {
  const { write, end } = res
  const { outermost } = shared
  const filtering = (): FilteredAnswer | undefined =>
    shared.outermost === outermost && shared.filtered?.isOpen ? shared.filtered : undefined
  const writeBytes = (bytes: Buffer): boolean => write.call(res, bytes, 'utf8')
  const endWith = (bytes?: Buffer): unknown =>
    end.apply(res, (bytes ? [bytes, 'utf8'] : []) as unknown as EndArguments)
  const filteredWrite = (...given: WriteArguments): boolean => {
    const filtered = filtering()
    // Node throws for what is no body.
    if (!filtered || !isBody(given[0])) return write.apply(res, given)
    const callback = given.findLast((each: unknown) => typeof each === 'function')
    if (callback) queueMicrotask(callback as () => void)
    return filtered.write(bytesOf(given), writeBytes)
  }
  const filteredEnd = (...given: EndArguments): unknown => {
    const filtered = filtering()
    const [chunk] = given as readonly unknown[]
    if (!filtered || !mayEndWith(chunk)) return end.apply(res, given)
    const callback = (given as unknown[]).findLast((each) => typeof each === 'function')
    if (callback) res.once('finish', callback as () => void)
    return filtered.end(bytesOf(given), writeBytes, endWith)
  }
  res.write = filteredWrite as ServerResponse['write']
  res.end = filteredEnd as ServerResponse['end']
  shared.filtering = { write: res.write, end: res.end }
}

/**
 * Passes what a handler of the app sends through a filter, before any holder receives it.
 *
 * @param next receives the error if the answer, or the rest of it, must not be sent: Express's `next`.
 */
export function filterAnswer(
  res: HeldAnswer,
  filter: () => AnswerFilter | undefined,
  next: (error: unknown) => void,
): void {
  if (res[SHARED]?.filtered) return
  holdEnd(res, {}, next)
  const { writeHead, flushHeaders } = res
  const shared = res[SHARED] as SharedState
  shared.filtered = new FilteredAnswer(res, filter, next, {
    takeOver: () => void Object.assign(res, shared.filtering),
    holdBack: () => {
      shared.isHeldBack = true
      const { restore } = freezeHead(res)
      return {
        restoreHead: restore,
        release: () => {
          restore()
          shared.isHeldBack = false
        },
      }
    },
  })
  filterFirst(res, shared)
  const holdsHead = (): boolean => res[SHARED]?.filtered?.holdsHead === true
  res.writeHead = ((...given: unknown[]) => {
    if (!holdsHead()) return writeHead.apply(res, given as Parameters<ServerResponse['writeHead']>)
    const [status, ...more] = given as [number, ...unknown[]]
    res.statusCode = status
    const reason = more.find((each) => typeof each === 'string')
    if (reason !== undefined) res.statusMessage = reason
    setHeaders(
      res,
      more.findLast((each) => typeof each === 'object' && each !== null),
    )
    return res
  }) as ServerResponse['writeHead']
  res.flushHeaders = () => {
    if (!holdsHead()) flushHeaders.call(res)
  }
}

/** Lets an error be written in place of what a filter does not let pass. */
export function unfiltered(res: HeldAnswer, write: () => void): void {
  const filtered = res[SHARED]?.filtered
  if (filtered) filtered.pausedFor(write)
  else write()
}

/** Sets headers as `writeHead` takes them: an object, or a flat list in which a name may stand several times. */
function setHeaders(res: ServerResponse, headers: unknown): void {
  if (!Array.isArray(headers)) {
    for (const [name, value] of Object.entries((headers ?? {}) as Record<string, string>))
      res.setHeader(name, value)
    return
  }
  for (let i = 0; i < headers.length; i += 2) res.removeHeader(String(headers[i]))
  for (let i = 0; i < headers.length; i += 2) res.appendHeader(String(headers[i]), headers[i + 1])
}

/**
 * Runs a function before the last byte of an answer goes out, whatever that is: the end of an answer, or the last byte of the
 * length that it has declared. Nearly all other bytes have gone out then.
 *
 * @param run must not reject.
 * @param next receives the error if the answer cannot be sent: Express's `next`.
 */
export function holdLastByte(res: HeldAnswer, run: BeforeLastByte, next: (error: unknown) => void): void {
  holdEnd(res, {}, next)
  const shared = res[SHARED] as SharedState
  shared.isWatched = true
  shared.beforeLastByte = run
}

/** Does the same before the end of a connection in another protocol. */
export function holdLastByteOf(socket: Socket, run: BeforeLastByte): void {
  const { end } = socket
  const heldEnd = (...given: Parameters<Socket['end']>): Socket => {
    const waiting = run()
    if (waiting) void waiting.then(() => end.apply(socket, given))
    else end.apply(socket, given)
    return socket
  }
  socket.end = heldEnd as Socket['end']
}

/** Keeps the status and headers of an answer as they are now, and ignores another head. */
function freezeHead(res: ServerResponse) {
  const { statusCode, statusMessage, writeHead } = res
  const headers = new Map(res.getHeaderNames().map((name) => [name, res.getHeader(name)]))
  const ignoreHead = (): ServerResponse => res
  res.writeHead = ignoreHead as ServerResponse['writeHead']

  /** Lets another answer be given. */
  function unfreeze(): void {
    res.writeHead = writeHead
  }

  /** Undoes what was changed meanwhile. */
  function restore(): void {
    unfreeze()
    res.statusCode = statusCode
    if (res.headersSent) return
    res.statusMessage = statusMessage
    for (const name of res.getHeaderNames()) if (!headers.has(name)) res.removeHeader(name)
    for (const [name, value] of headers)
      if (value !== undefined && res.getHeader(name) !== value) res.setHeader(name, value)
  }

  return { unfreeze, restore }
}

/** The size of what is called the last bytes of an answer: what may be unsent when its slot is given back. */
export const LAST_BYTES = 16 * 1024

const NONE = Buffer.alloc(0)

const ignoreWrite = (): boolean => true

/** Whether Node sends a chunk. */
function isBody(chunk: unknown): chunk is string | Uint8Array {
  return typeof chunk === 'string' || chunk instanceof Uint8Array
}

/** Whether Node ends an answer with a chunk. It takes any falsy one, and a callback, for no body. */
function mayEndWith(chunk: unknown): boolean {
  return !chunk || typeof chunk === 'function' || isBody(chunk)
}

/** Returns the bytes that a response's `write` or `end` was given. */
function bytesOf([chunk, encoding]: readonly unknown[]): Uint8Array {
  if (typeof chunk === 'string')
    return Buffer.from(chunk, typeof encoding === 'string' ? (encoding as BufferEncoding) : 'utf8')
  return chunk instanceof Uint8Array ? chunk : NONE
}

/**
 * Sends what `end` was given but for the last bytes.
 *
 * @returns what is left to give to `end`, and a promise that resolves once the caller has taken nearly everything else, or
 * has left; undefined if it has.
 */
function sendMost(
  res: ServerResponse,
  write: ServerResponse['write'],
  given: EndArguments,
): { rest: EndArguments; drained: Promise<void> | undefined } {
  let rest = given
  const bytes = bytesOf(given)
  if (bytes.byteLength > LAST_BYTES) {
    if (!res.headersSent && !res.hasHeader('transfer-encoding')) declareLength(res, bytes.byteLength)
    write.call(res, bytes.subarray(0, -LAST_BYTES), 'utf8')
    const callback = given.findLast((each) => typeof each === 'function')
    rest = [bytes.subarray(-LAST_BYTES), callback] as unknown as EndArguments
  }
  return { rest, drained: res.writableNeedDrain ? drained(res) : undefined }
}

/** Without a length, an answer that begins before its end is sent in chunks. */
function declareLength(res: ServerResponse, length: number): void {
  const bodyless = res.statusCode < 200 || res.statusCode === 204 || res.statusCode === 304
  if (!bodyless && !res.hasHeader('content-length')) res.setHeader('content-length', length)
}

function drained(res: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      res.off('drain', done).off('close', done)
      resolve()
    }
    res.on('drain', done).on('close', done)
    if (res.destroyed) done()
  })
}
