import type { Server } from 'node:http'
import { createServer as createListener, type ListenOptions, type Server as TcpServer } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Call, GatewayError, type Logger } from 'express-model-gateway'
import type { Connections, UpgradeHandler } from 'express-model-gateway/begin-call'
import type { Readiness } from './readiness.ts'

/** How long running calls may take to end. */
const DRAIN_TIMEOUT_MS = 30_000
/** How long a connection or WebSocket must be idle before it is closed: callers under load send again sooner. */
const IDLE_MS = 1000
/** How long new connections are accepted, at most, while idle ones end. */
const ACCEPT_MS = 2 * IDLE_MS
/** How often idle connections are looked for. */
const CHECK_INTERVAL_MS = 50
/** How long callers whose calls are ended may take to read why. */
const LAST_BYTES_MS = 1000
/** How long calls of a replaced worker may take to end. It is long enough for the longest call. */
const RETIRE_TIMEOUT_MS = 15 * 60_000

/** The parts of a server that a shutdown needs. */
export interface Draining {
  readonly server: Server
  readonly connections: Connections
  readonly upgrades: UpgradeHandler
  readonly readiness: Readiness
  /** Ends the calls that run, but for WebSockets. */
  readonly abortCalls: () => void
  /** The time between "not ready" and the refusal of connections, in which balancers notice, in milliseconds. */
  readonly noticeMs: number
  readonly logger: Logger
}

/** A server that can stop accepting connections while its idle ones stay open. */
export interface Listening {
  readonly server: Server
  /** Accepts the connections of the server until it is closed. */
  readonly listener: TcpServer
}

/** Has a server listen on the handle of another one: `close` of an HTTP server would also end its idle connections. */
export function listenThrough(server: Server, options: ListenOptions): TcpServer {
  const listener = createListener()
  return listener
    .on('error', (error) => server.emit('error', error))
    .listen(options, () => server.listen(listener))
}

/**
 * Stops a server without failing requests that it has received. It reports "not ready", and after the notice ends connections
 * that are idle for a second; each other one is closed behind its next answer. Once none is idle, it accepts no new ones. It
 * closes WebSockets that are idle for a second from the beginning, and ends calls that still run 30 s later with an error.
 *
 * @returns whether all calls ended in time.
 */
export async function drainServer(draining: Draining, timeoutMs = DRAIN_TIMEOUT_MS): Promise<boolean> {
  const { server, connections, upgrades, readiness, noticeMs } = draining
  readiness.drain()
  closeBehindAnswers(server)
  const idle = setInterval(() => upgrades.closeIdle(IDLE_MS), CHECK_INTERVAL_MS)
  await sleep(noticeMs)
  clearInterval(idle)
  const from = performance.now()
  return closeWithin(draining, timeoutMs, () => {
    const now = performance.now()
    if (now - from >= IDLE_MS) connections.endIdle(now - IDLE_MS)
    return !connections.hasIdle || now - from >= ACCEPT_MS
  })
}

/**
 * Stops a server whose port other processes serve now. It stays ready, answers requests on its open connections and
 * closes each connection behind its next answer. An idle connection is closed only after its keep-alive time, so that no caller
 * sends a request while it closes.
 */
export async function retireServer(draining: Draining & Listening): Promise<boolean> {
  const { server, connections, listener } = draining
  closeBehindAnswers(server)
  listener.close()
  return closeWithin(draining, RETIRE_TIMEOUT_MS, () => !connections.hasIdle)
}

/** Closes each connection behind its next answer. A second call does no harm. */
function closeBehindAnswers(server: Server): void {
  server.prependListener('request', (_req, res) => res.setHeader('connection', 'close'))
}

/**
 * Waits until all connections of a server have ended, and ends calls that still run when the time is up.
 *
 * @param mayClose whether `close`, which ends idle connections at once, ends none that a caller may be about to use.
 */
async function closeWithin(
  { server, upgrades, abortCalls, logger }: Draining,
  timeoutMs: number,
  mayClose: () => boolean,
): Promise<boolean> {
  const { promise: closed, resolve } = Promise.withResolvers<void>()
  let isClosing = false
  const close = (): void => {
    isClosing = true
    server.close(() => resolve())
  }
  const ending = setInterval(() => {
    upgrades.closeIdle(IDLE_MS)
    // Requests that have arrived are read first.
    if (mayClose() && !isClosing) setImmediate(close)
  }, CHECK_INTERVAL_MS)
  let inTime = true
  let cutOff = setTimeout(() => {
    inTime = false
    logger.warn({}, `calls still running after ${timeoutMs / 1000} s are cut off`)
    abortCalls()
    upgrades.cutOff()
    cutOff = setTimeout(() => {
      if (!isClosing) close()
      server.closeAllConnections()
    }, LAST_BYTES_MS)
  }, timeoutMs)
  await closed
  clearInterval(ending)
  clearTimeout(cutOff)
  return inTime
}

const STOPS =
  'The gateway stops, and the call has taken too long to wait for. Send the request again, in several parts if it is large.'

/** Knows the open calls, so that a shutdown can wait for those that outlive their connection, and end the others. */
export class OpenCalls {
  /** Since when each is open, by the monotonic clock. */
  readonly #open = new Map<Call, number>()
  #whenNone: (() => void) | undefined
  readonly #onEnd: (call: Call) => void

  /** @param onEnd runs at the end of each call, which took `ms`, behind all that it gives back. */
  constructor(onEnd: (call: Call, ms: number) => void) {
    this.#onEnd = (call) => {
      const ms = performance.now() - Number(this.#open.get(call))
      this.#open.delete(call)
      try {
        onEnd(call, ms)
      } finally {
        if (this.#open.size === 0) this.#whenNone?.()
      }
    }
  }

  readonly add = (call: Call): void => {
    this.#open.set(call, performance.now())
    call.onEnd('open calls', this.#onEnd)
  }

  /** Ends all calls because the gateway stops. WebSockets are left to their `UpgradeHandler`. */
  readonly abort = (): void => {
    for (const call of this.#open.keys()) call.abort(new GatewayError('internal_error', { message: STOPS }))
  }

  /** Resolves when all calls have ended, or after `withinMs`. */
  async ended(withinMs: number): Promise<void> {
    if (this.#open.size === 0) return
    let timer: NodeJS.Timeout | undefined
    await new Promise<void>((resolve) => {
      this.#whenNone = resolve
      timer = setTimeout(resolve, withinMs)
    })
    clearTimeout(timer)
  }
}
