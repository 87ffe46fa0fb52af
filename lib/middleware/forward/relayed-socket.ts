import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { Upgrade, UpgradedSession } from '../../core/call/index.ts'
import { connectionFailure } from '../../routing/attempt/failure.ts'
import type { ProxiedExchange } from './proxied-exchange.ts'

/** How long a side may take to receive its last bytes once the other has ended, and then to close. */
const LAST_BYTES_MS = 5000
const CLOSE_GRACE_MS = 500
/** How long a frame that has begun may take to come whole before the WebSocket is closed without a close frame. */
const LAST_FRAME_MS = 1000
/** The system probes a connection after this long without a byte. */
const KEEP_ALIVE_MS = 30_000
/** How long a line may think about what its caller has said before the session counts as idle. */
const ANSWER_MS = 5000
/** A caller that says more before its handshake is answered is no client of WebSockets, which wait for the answer. */
const MAX_EARLY_BYTES = 64 * 1024
/** The code of a close frame whose sender goes away. */
const GOING_AWAY = 1001

/**
 * Answers the handshake and relays both directions until both sides are closed. When one side ends, the other is
 * ended after the bytes that are still on their way to it.
 */
export class RelayedSocket implements UpgradedSession {
  readonly #exchange: ProxiedExchange
  readonly #caller: Socket
  readonly #line: Duplex
  readonly #toCaller = new FrameBounds()
  readonly #toLine = new FrameBounds()
  readonly #endCaller: () => void
  readonly #endLine: () => void
  #lastByteAt = performance.now()
  #callerSpokeLast = false
  #closing = false

  constructor(exchange: ProxiedExchange, { socket }: Upgrade, line: Duplex) {
    this.#exchange = exchange
    this.#caller = socket
    this.#line = line
    this.#endCaller = enderOf(socket)
    this.#endLine = enderOf(line)
  }

  /** Relays until both sides are closed. */
  async relay(handshake: string, head: Buffer): Promise<void> {
    const [socket, line, exchange] = [this.#caller, this.#line, this.#exchange]
    exchange.relaying()
    prepare(socket)
    prepare(line)
    socket.write(handshake, 'latin1')
    if (head.length > 0) socket.unshift(head)

    let broken: Error | undefined
    line.on('error', (error) => {
      if (!socket.readableEnded && !this.#closing) broken ??= error
    })
    line.on('data', this.#onLineData)
    socket.on('data', this.#onCallerData)
    line.pipe(socket)
    socket.pipe(line)
    follow(line, this.#endCaller)
    follow(socket, this.#endLine)

    let open = 2
    const onClose = (): void => {
      if (--open > 0) return
      if (broken) exchange.breakOff({ ...connectionFailure(broken, false), retryable: false })
      else exchange.complete()
    }
    for (const side of [socket, line]) {
      if (side.closed) onClose()
      else side.once('close', onClose)
    }
    await exchange.ended
  }

  get idleMs(): number {
    const silent = performance.now() - this.#lastByteAt
    const isBusy = !this.#toCaller.between || !this.#toLine.between
    return isBusy || (this.#callerSpokeLast && silent < ANSWER_MS) ? 0 : silent
  }

  close(code: number, reason: string): void {
    if (this.#closing) return
    this.#closing = true
    this.#line.unpipe(this.#caller)
    this.#caller.unpipe(this.#line)
    // Later messages of the caller are not relayed. The gateway waits for the caller's own close frame.
    this.#caller.resume()
    if (this.#toCaller.between) this.#closeCaller(code, reason)
    else this.#closeBehindFrame(code, reason)
    this.#line.resume()
  }

  readonly #onLineData = (piece: Buffer): void => {
    if (this.#closing) return
    this.#toCaller.follow(piece)
    this.#lastByteAt = performance.now()
    this.#callerSpokeLast = false
  }

  readonly #onCallerData = (piece: Buffer): void => {
    if (this.#closing) return
    this.#toLine.follow(piece)
    this.#lastByteAt = performance.now()
    this.#callerSpokeLast = true
  }

  #closeCaller(code: number, reason: string): void {
    this.#caller.write(closeFrame(code, reason, false))
    this.#endBoth()
  }

  #endBoth(): void {
    this.#endCaller()
    if (this.#toLine.between) this.#line.write(closeFrame(GOING_AWAY, '', true))
    this.#endLine()
  }

  /** Passes the frame on that the line has begun. If it does not come whole, the caller gets no close frame. */
  #closeBehindFrame(code: number, reason: string): void {
    const late = setTimeout(() => this.#endBoth(), LAST_FRAME_MS)
    const onDrain = (): void => void this.#line.resume()
    const onData = (piece: Buffer): void => {
      const flows = this.#caller.write(piece.subarray(0, this.#toCaller.finish(piece)))
      if (!this.#toCaller.between) {
        if (!flows) this.#line.pause()
        return
      }
      clearTimeout(late)
      this.#line.off('data', onData)
      this.#closeCaller(code, reason)
    }
    this.#line.on('data', onData)
    this.#caller.on('drain', onDrain)
  }
}

/**
 * Watches a socket that nobody reads yet, and closes it when its caller ends it. What the caller has said by then is read, since
 * an end shows only behind it, and is put back for the next reader.
 *
 * @returns a function that ends the watch.
 */
export function watchUnread(socket: Duplex): () => void {
  const early: Buffer[] = []
  let size = 0
  const onReadable = (): void => {
    for (let piece: Buffer | null = socket.read(); piece !== null; piece = socket.read()) {
      early.push(piece)
      size += piece.length
    }
    if (size > MAX_EARLY_BYTES) socket.destroy()
  }
  const onEnd = (): void => void socket.destroy()
  socket.on('readable', onReadable).on('end', onEnd)
  if (socket.readableEnded) onEnd()
  return () => {
    socket.off('readable', onReadable).off('end', onEnd)
    const said = Buffer.concat(early.splice(0))
    if (said.length > 0 && !socket.destroyed) socket.unshift(said)
  }
}

function prepare(socket: Duplex): void {
  if (!isSocket(socket)) return
  socket.setTimeout(0)
  socket.setNoDelay(true)
  socket.setKeepAlive(true, KEEP_ALIVE_MS)
}

function isSocket(socket: Duplex): socket is Socket {
  return 'setKeepAlive' in socket
}

/** Ends a side once the other has ended. A pipe ends its destination only if its source ended regularly. */
function follow(other: Duplex, end: () => void): void {
  other.on('end', end).on('close', end)
  if (other.closed) end()
}

/**
 * Returns a function that closes a side: after the bytes on their way to it, and within a short time even if it does
 * not close by itself.
 */
function enderOf(side: Duplex): () => void {
  let ending = false
  return () => {
    if (ending) return
    ending = true
    side.end()
    const hurry = setTimeout(() => side.destroy(), LAST_BYTES_MS).unref()
    let goodbye: NodeJS.Timeout | undefined
    const cut = (): void => {
      goodbye = setTimeout(() => side.destroy(), CLOSE_GRACE_MS).unref()
    }
    if (side.writableFinished) cut()
    else side.once('finish', cut)
    side.once('close', () => {
      clearTimeout(hurry)
      clearTimeout(goodbye)
    })
  }
}

/** The longest header of a frame: two bytes, eight of length, four of the mask. */
const MAX_HEADER = 14
const MASKED = 0x80
const LENGTH = 0x7f
const LENGTH_IN_2 = 126
const LENGTH_IN_8 = 127

/**
 * Follows the frames of a WebSocket through pieces that begin and end anywhere. A frame of our own must only be sent
 * between two of theirs.
 */
export class FrameBounds {
  readonly #header = Buffer.alloc(MAX_HEADER)
  #headerSize = 0
  /** The bytes of the begun frame's payload that have not come. */
  #left = 0

  /** Whether all frames that have begun have come whole. */
  get between(): boolean {
    return this.#left === 0 && this.#headerSize === 0
  }

  /** Takes a piece. */
  follow(piece: Buffer): void {
    let at = 0
    while (at < piece.length) at = this.#advance(piece, at)
  }

  /** Takes a piece up to the end of the begun frame, and returns where that is. */
  finish(piece: Buffer): number {
    let at = 0
    while (at < piece.length && !this.between) at = this.#advance(piece, at)
    return at
  }

  #advance(piece: Buffer, from: number): number {
    if (this.#left > 0) {
      const taken = Math.min(this.#left, piece.length - from)
      this.#left -= taken
      return from + taken
    }
    this.#header[this.#headerSize++] = piece[from] as number
    if (this.#headerSize === headerLength(this.#header, this.#headerSize)) {
      this.#left = payloadLength(this.#header)
      this.#headerSize = 0
    }
    return from + 1
  }
}

/** Returns how long a header is, of which so many bytes have come; unknown before the second. */
function headerLength(header: Buffer, size: number): number | undefined {
  if (size < 2) return undefined
  const second = header[1] as number
  const length = second & LENGTH
  const extended = length === LENGTH_IN_2 ? 2 : length === LENGTH_IN_8 ? 8 : 0
  return 2 + extended + (second & MASKED ? 4 : 0)
}

function payloadLength(header: Buffer): number {
  const length = (header[1] as number) & LENGTH
  if (length === LENGTH_IN_2) return header.readUInt16BE(2)
  return length === LENGTH_IN_8 ? Number(header.readBigUInt64BE(2)) : length
}

const FINAL_CLOSE = 0x88

/**
 * Returns a close frame.
 *
 * @param reason at most 123 bytes.
 * @param masked whether it goes to a server. The mask is zero, which changes nothing in the payload.
 */
export function closeFrame(code: number, reason: string, masked: boolean): Buffer {
  const text = Buffer.from(reason)
  const head = Buffer.from([FINAL_CLOSE, text.length + 2 + (masked ? MASKED : 0)])
  const status = Buffer.from([code >> 8, code & 0xff])
  return Buffer.concat([head, Buffer.alloc(masked ? 4 : 0), status, text])
}
