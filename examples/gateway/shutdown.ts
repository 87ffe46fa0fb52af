import type { Server } from 'node:http'
import { Server as TcpServer } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger, UpgradeHandler } from 'express-model-gateway'
import type { Connections } from './in-flight.ts'
import type { Readiness } from './readiness.ts'

/** How long running calls may take to end. */
const DRAIN_TIMEOUT_MS = 30_000
/** How long a connection or WebSocket must be idle before it is closed: callers under load send again sooner. */
const IDLE_MS = 1000
/** How often idle connections are looked for. */
const LOOK_MS = 50
/** How long calls of a replaced worker may take to end. It is long enough for the longest call. */
const RETIRE_TIMEOUT_MS = 15 * 60_000

/** The parts of a server that a shutdown needs. */
export interface Draining {
  readonly server: Server
  readonly connections: Connections
  readonly upgrades: UpgradeHandler
  readonly readiness: Readiness
  /** The time between "not ready" and the refusal of connections, in which balancers notice, in milliseconds. */
  readonly noticeMs: number
  readonly logger: Logger
}

/**
 * Stops a server without failing requests that it has received. It reports "not ready", and after the notice accepts no new
 * connections; each connection is closed behind its next answer. It closes WebSockets that are idle for a second from the
 * beginning, other idle connections after the notice, and cuts off calls that still run 30 s later.
 *
 * @returns whether all calls ended in time.
 */
export async function drainServer(draining: Draining, timeoutMs = DRAIN_TIMEOUT_MS): Promise<boolean> {
  draining.readiness.drain()
  closeBehindAnswers(draining.server)
  const idle = setInterval(() => draining.upgrades.closeIdle(IDLE_MS), LOOK_MS)
  await sleep(draining.noticeMs)
  clearInterval(idle)
  return closeWithin(draining, timeoutMs, IDLE_MS)
}

/**
 * Stops a server whose port other processes serve now. It stays ready, answers requests on its open connections and closes
 * each connection behind its next answer. An idle connection is closed only after its keep-alive time, so that no caller
 * sends a request while it closes.
 */
export async function retireServer(draining: Draining): Promise<boolean> {
  closeBehindAnswers(draining.server)
  return closeWithin(draining, RETIRE_TIMEOUT_MS)
}

/** Closes each connection behind its next answer. A second call does no harm. */
function closeBehindAnswers(server: Server): void {
  server.prependListener('request', (_req, res) => res.setHeader('connection', 'close'))
}

async function closeWithin(
  { server, connections, upgrades, logger }: Draining,
  timeoutMs: number,
  idleMs?: number,
): Promise<boolean> {
  const from = performance.now()
  const closed = stopAccepting(server)
  const ending = setInterval(endIdle, LOOK_MS)
  let inTime = true
  const cutOff = setTimeout(() => {
    inTime = false
    logger.warn({}, `calls still running after ${timeoutMs / 1000} s are cut off`)
    server.closeAllConnections()
    upgrades.cutOff()
  }, timeoutMs)
  await closed
  clearInterval(ending)
  clearTimeout(cutOff)
  return inTime

  function endIdle(): void {
    upgrades.closeIdle(IDLE_MS)
    const now = performance.now()
    if (idleMs !== undefined && now - from >= idleMs) connections.endIdle(now - idleMs)
  }
}

/** Resolves when all connections have ended. `close` of an HTTP server would end idle ones at once, even if a request comes. */
function stopAccepting(server: Server): Promise<void> {
  return new Promise((resolve) => void TcpServer.prototype.close.call(server, () => resolve()))
}
