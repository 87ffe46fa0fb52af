import type { Server } from 'node:http'
import { Server as TcpServer } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger, UpgradeHandler } from 'express-model-gateway'
import type { Connections } from './connections.ts'
import type { Readiness } from './readiness.ts'

/** Between saying "not ready" and closing the door, so that a balancer can notice. */
const NOTICE_MS = 250
/** Running calls are given this long to end. */
const PATIENCE_MS = 30_000
/** A caller that keeps a connection may send on it at any moment; under load it does so sooner than this. */
const IDLE_MS = 1000
/** Nobody waits for a process that others have taken the place of, so that the longest call can end. */
const RETIRING_PATIENCE_MS = 15 * 60_000

/** What is ended, and who is told. */
export interface Draining {
  readonly server: Server
  readonly connections: Connections
  readonly upgrades: UpgradeHandler
  readonly readiness: Readiness
  readonly logger: Logger
}

/**
 * Ends a server without failing a request it has received: first not ready, then no new connections, and every answer
 * from now on closes its connection. A connection on which nothing comes for a second is ended. What still runs after
 * 30 s is cut off.
 *
 * @returns whether everything ended in time.
 */
export async function drainServer(draining: Draining, patienceMs = PATIENCE_MS): Promise<boolean> {
  draining.readiness.drain()
  closeBehindAnswers(draining.server)
  await sleep(NOTICE_MS)
  return closeWithin(draining, patienceMs, IDLE_MS)
}

/**
 * Ends a server whose place others behind the same port have taken. It stays ready: what still comes on its open
 * connections is served, and answered with the end of the connection. One on which nothing comes is ended only when it
 * would have been anyway, after the time that every answer promised, so that no caller can meet its end.
 */
export async function retireServer(draining: Draining): Promise<boolean> {
  closeBehindAnswers(draining.server)
  return closeWithin(draining, RETIRING_PATIENCE_MS)
}

/** Also for requests on connections that are open already. Said twice, it does no harm. */
function closeBehindAnswers(server: Server): void {
  server.prependListener('request', (_req, res) => res.setHeader('connection', 'close'))
}

async function closeWithin(
  { server, connections, upgrades, logger }: Draining,
  patienceMs: number,
  idleMs?: number,
): Promise<boolean> {
  const from = performance.now()
  const closed = stopAccepting(server)
  const ending = idleMs === undefined ? undefined : setInterval(endIdle, 50, idleMs)
  let inTime = true
  const cutOff = setTimeout(() => {
    inTime = false
    logger.warn({}, `calls still running after ${patienceMs / 1000} s are cut off`)
    server.closeAllConnections()
    upgrades.cutOff()
  }, patienceMs)
  await closed
  clearInterval(ending)
  clearTimeout(cutOff)
  return inTime

  function endIdle(forMs: number): void {
    const now = performance.now()
    if (now - from >= forMs) connections.endIdle(now - forMs)
  }
}

/** Resolves when all connections have ended. `server.close` of HTTP would end idle ones at once, whoever is sending. */
function stopAccepting(server: Server): Promise<void> {
  return new Promise((resolve) => void TcpServer.prototype.close.call(server, () => resolve()))
}
