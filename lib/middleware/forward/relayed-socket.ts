import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { Upgrade } from '../../core/call/index.ts'
import { connectionFailure } from '../../routing/attempt/outcome.ts'
import type { ProxiedExchange } from './proxied-exchange.ts'

/** How long a side may take for its last bytes when the other has ended, and then for its own end. */
const LAST_BYTES_MS = 5000
const GOODBYE_MS = 500
/** After this long without a byte the system asks whether the other side is still there. */
const KEEP_ALIVE_MS = 30_000

/**
 * Answers the handshake and passes everything on, in both directions, until both sides are closed. When one ends the
 * other is ended behind what is still on its way to it.
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
    if (broken) exchange.breakOff({ ...connectionFailure(broken), retryable: false })
    else exchange.complete()
  }
  for (const side of [socket, line]) {
    if (side.closed) onClose()
    else side.once('close', onClose)
  }
  await exchange.ended()
}

/**
 * Closes a caller's socket when the caller has left it before anything is passed on: nobody reads it yet, so that its
 * end would go unnoticed. What the caller has sent already stays unread.
 *
 * @returns ends the watch, for who reads the socket from then on.
 */
export function watchUnread(socket: Duplex): () => void {
  const onReadable = (): void => {
    // An end is told only to who reads.
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
 * Closes a side once the other has ended: behind what is still on its way to it, and soon, whether it says goodbye or
 * not. A pipe ends its destination only where its source has ended in good order.
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
