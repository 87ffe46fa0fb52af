import type { Server } from 'node:http'
import { Server as NetServer, type Socket } from 'node:net'
import { aNumber, checkOptions, kindOf } from '../../core/options/index.ts'

/** Options of {@link cutStalledCallers}. */
export interface StalledCallersOptions {
  /** How long a caller may take no byte of what is sent to it, in milliseconds. Defaults to 60000. */
  afterMs?: number
}

/** What a connection had taken when it was last looked at. */
interface Progress {
  /** The bytes whose write was done. */
  done: number
  /** The bytes of the running write that the system had not taken. */
  queued: number
  /** How often that was seen again. */
  again: number
}

/** How often a caller is looked at, at least, in the time that it has. */
const LOOKS = 4
const MAX_INTERVAL_MS = 5000

/**
 * Cuts the connections of callers that take no byte of their answer for a while. Their calls end as if the caller had
 * left, so that slots, money, memory and upstream connections are free again. It holds for every answer and WebSocket
 * of the server. A caller that reads slowly, and one to whom nothing is sent, is not cut.
 *
 * @throws TypeError if an option is unusable, or the server is none, such as an app.
 * @example
 * cutStalledCallers(createServer(app).listen(8787))
 */
export function cutStalledCallers(server: Server, options: StalledCallersOptions = {}): void {
  checkOptions('cutStalledCallers', options, { afterMs: aNumber('above 0', Number.MIN_VALUE) })
  // An app has "on", too, but no connections.
  if (!((server as unknown) instanceof NetServer))
    throw new TypeError(
      `cutStalledCallers: it needs the server, such as createServer(app) or what app.listen() returns, not ${kindOf(server)}`,
    )
  const { afterMs = 60_000 } = options
  const open = new Map<Socket, Progress>()
  server.on('connection', (socket: Socket) => {
    // No count is like this one: its time begins when it is first looked at.
    open.set(socket, { done: -1, queued: 0, again: 0 })
    socket.once('close', () => open.delete(socket))
  })
  const looks = Math.max(LOOKS, Math.ceil(afterMs / MAX_INTERVAL_MS))
  // Looks are counted, and not the time: what callers take shows only while this process runs, which can be stopped.
  const look = (): void => {
    for (const [socket, progress] of open) {
      noteProgress(socket, progress)
      if (progress.again >= looks) socket.destroy()
    }
  }
  const timer = setInterval(look, Math.min(MAX_INTERVAL_MS, afterMs / LOOKS)).unref()
  server.once('close', () => clearInterval(timer))
}

/** Notes what the caller has taken, and whether something waits for it and it has taken no byte since the last look. */
function noteProgress(socket: Socket, progress: Progress): void {
  const queued = queuedBytes(socket)
  const done = socket.bytesWritten - socket.writableLength
  if (socket.writableLength + queued > 0 && done === progress.done && queued === progress.queued) {
    progress.again++
    return
  }
  progress.done = done
  progress.queued = queued
  progress.again = 0
}

/**
 * Returns how much of the running write the system has not taken yet. A whole answer is one write, which is done only
 * with its last byte. Node's own timeouts of sockets go by the same figure.
 */
function queuedBytes(socket: Socket): number {
  const { _handle: handle } = socket as Socket & { _handle?: { writeQueueSize?: number } | null }
  return handle?.writeQueueSize ?? 0
}
