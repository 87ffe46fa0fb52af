import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { Upgrade } from '../../core/call/index.ts'
import { connectionFailure } from '../../routing/attempt/failure.ts'
import type { ProxiedExchange } from './proxied-exchange.ts'

/** How long a side may take to receive its last bytes once the other has ended, and then to close. */
const LAST_BYTES_MS = 5000
const GOODBYE_MS = 500
/** The system probes a connection after this long without a byte. */
const KEEP_ALIVE_MS = 30_000

/**
 * Answers the handshake and relays both directions until both sides are closed. When one side ends, the other is
 * ended after the bytes that are still on their way to it.
 */
export async function relaySocket(
  exchange: ProxiedExchange,
  caller: Upgrade,
  line: Duplex,
  handshake: string,
): Promise<void> {
  const { socket } = caller
  prepare(socket)
  prepare(line)
  socket.write(handshake, 'latin1')
  if (caller.head.length > 0) socket.unshift(caller.head)

  let broken: Error | undefined
  line.on('error', (error) => {
    if (!socket.readableEnded) broken ??= error
  })
  line.pipe(socket)
  socket.pipe(line)
  follow(line, socket)
  follow(socket, line)

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

/**
 * Closes a socket when the caller ends it before anything is relayed. Nobody reads the socket yet, so its end would
 * go unnoticed. Bytes already received stay in its buffer.
 *
 * @returns a function that ends the watch. Call it before reading from the socket.
 */
export function watchUnread(socket: Duplex): () => void {
  const onReadable = (): void => {
    // 'end' is emitted only after a read.
    if (socket.readableLength === 0) socket.read()
  }
  const onEnd = (): void => void socket.destroy()
  socket.on('readable', onReadable).on('end', onEnd)
  return () => socket.off('readable', onReadable).off('end', onEnd)
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

/**
 * Closes a side once the other has ended: after the bytes on their way to it, and within a short time even if it does
 * not close by itself. A pipe ends its destination only if its source ended regularly.
 */
function follow(other: Duplex, side: Duplex): void {
  let following = false
  const close = (): void => {
    if (following) return
    following = true
    side.end()
    const hurry = setTimeout(() => side.destroy(), LAST_BYTES_MS).unref()
    let goodbye: NodeJS.Timeout | undefined
    const cut = (): void => {
      goodbye = setTimeout(() => side.destroy(), GOODBYE_MS).unref()
    }
    if (side.writableFinished) cut()
    else side.once('finish', cut)
    side.once('close', () => {
      clearTimeout(hurry)
      clearTimeout(goodbye)
    })
  }
  other.on('end', close).on('close', close)
  if (other.closed) close()
}
