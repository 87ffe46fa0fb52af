import type { Server } from 'node:http'
import type { Logger, UpgradeHandler } from 'express-model-gateway'
import type { Readiness } from './readiness.ts'

/** Running calls are given this long to end. */
const PATIENCE_MS = 30_000
/** Between saying "not ready" and closing the door, so that a balancer can notice. */
const NOTICE_MS = 250

/**
 * Ends a server without failing a request it has received: first not ready, then no new connections, and every answer
 * from now on closes its connection. What still runs after 30 s is cut off.
 *
 * @returns whether everything ended in time.
 */
export async function drainServer(
  server: Server,
  upgrades: UpgradeHandler,
  readiness: Readiness,
  logger: Logger,
  patienceMs = PATIENCE_MS,
): Promise<boolean> {
  readiness.drain()
  server.prependListener('request', (_req, res) => res.setHeader('connection', 'close'))
  await new Promise((resolve) => setTimeout(resolve, NOTICE_MS))
  const closed = new Promise<boolean>((resolve) => server.close(() => resolve(true)))
  // A connection kept alive by an answer that was on its way before closes once it is idle.
  const idle = setInterval(() => server.closeIdleConnections(), 100)
  const late = new Promise<boolean>((resolve) => setTimeout(resolve, patienceMs, false).unref())
  const inTime = await Promise.race([closed, late])
  clearInterval(idle)
  if (!inTime) {
    logger.warn({}, `calls still running after ${patienceMs / 1000} s are cut off`)
    server.closeAllConnections()
    upgrades.cutOff()
    await closed
  }
  return inTime
}
