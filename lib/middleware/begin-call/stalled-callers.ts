import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { Server as NetServer, type Socket } from 'node:net'
import { aNumber, checkOptions, kindOf } from '../../core/options/index.ts'

/** Options of {@link cutStalledCallers}. */
export interface StalledCallersOptions {
  /** How long a caller may take no byte of what is sent to it, in milliseconds. Defaults to 60000. */
  afterMs?: number
}

/** The progress of a connection when it was last checked. */
export interface Progress {
  /** The bytes whose write was done. */
  done: number
  /** How many checks in a row have found bytes that wait, and no write that has ended since the one before. */
  again: number
}

interface Caller {
  readonly progress: Progress
  /** The running answer; undefined between answers, and on an upgraded connection. */
  res: ServerResponse | undefined
  /** The bytes that the caller had sent when its last write ended. */
  read: number
  /** How many timeouts of the socket have followed each other, and when the last one was. */
  timeouts: number
  timeoutAt: number
}

/** How many checks there are, at least, in the time that a caller has. */
const MIN_CHECKS = 4
const MAX_INTERVAL_MS = 5000

/**
 * Cuts the connections of callers that take no byte of their answer for a while. Their calls end as if the caller had
 * left, so that slots, money, memory and upstream connections are free again. It holds for every answer and WebSocket
 * of the server. A caller that reads slowly, and one to whom nothing is sent, is not cut.
 *
 * A whole answer can be a single write, which ends with its last byte. Only Node's own timeout of sockets knows whether a
 * part of it was taken, so that timeout is used while a write takes long. It is also put off by bytes that the caller
 * sends; then only writes that end count.
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
  // Checks are counted, and not the time: a process that was stopped has seen nothing of what its callers took.
  const checks = Math.max(MIN_CHECKS, Math.ceil(afterMs / MAX_INTERVAL_MS))
  const intervalMs = Math.ceil(afterMs / checks)
  const callers = new Map<Socket, Caller>()

  server.on('connection', (socket: Socket) => {
    callers.set(socket, {
      progress: { done: -1, again: 0 },
      res: undefined,
      read: 0,
      timeouts: 0,
      timeoutAt: 0,
    })
    socket.once('close', () => callers.delete(socket))
  })
  server.on('request', (req: IncomingMessage, res: ServerResponse) => {
    const caller = callers.get(req.socket)
    if (!caller) return
    caller.res = res
    res.on('timeout', (socket: Socket) => onTimeout(caller, socket, res))
    res.on('close', () => {
      if (caller.res === res) caller.res = undefined
    })
  })

  function check(): void {
    for (const [socket, caller] of callers) {
      const { progress, res } = caller
      noteProgress(socket, progress)
      if (progress.again === 0) {
        caller.read = socket.bytesRead
        caller.timeouts = 0
        continue
      }
      const isSending = socket.bytesRead !== caller.read
      if (progress.again >= checks && (res === undefined || isSending)) socket.destroy()
      else if (progress.again === 1 && res) socket.setTimeout(intervalMs)
    }
  }

  /** Node puts a timeout off without an event when a part of the running write was taken. */
  function onTimeout(caller: Caller, socket: Socket, res: ServerResponse): void {
    if (socket.timeout !== intervalMs) {
      // A timeout of the server: where nobody listens to it, the connection is closed.
      const listeners = [server, res.req, res].map((each) => each.listenerCount('timeout'))
      if (listeners.join() === '0,0,1') socket.destroy()
      return
    }
    if (caller.progress.again === 0) return
    const now = performance.now()
    caller.timeouts = now - caller.timeoutAt < 1.5 * intervalMs ? caller.timeouts + 1 : 1
    caller.timeoutAt = now
    if (caller.timeouts >= checks) socket.destroy()
    else socket.setTimeout(intervalMs)
  }

  const timer = setInterval(check, intervalMs).unref()
  server.once('close', () => clearInterval(timer))
}

/** Notes which writes have ended, and whether something waits although none has ended since the last check. */
export function noteProgress(socket: Socket, progress: Progress): void {
  const done = socket.bytesWritten - socket.writableLength
  progress.again = socket.writableLength > 0 && done === progress.done ? progress.again + 1 : 0
  progress.done = done
}
