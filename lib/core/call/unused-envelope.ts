import type { ServerResponse } from 'node:http'
import type { Logger } from './logger.ts'

/** The handlers of `errorEnvelope` that no error has reached so far. */
const unused = new Set<object>()

/** Notes a handler of `errorEnvelope`, so that the operator learns if it is mounted too early. */
export function noteEnvelope(handler: object): void {
  unused.add(handler)
}

/** Notes that an error has reached a handler. */
export function noteEnvelopeUsed(handler: object): void {
  unused.delete(handler)
}

/**
 * Logs once that an `errorEnvelope` is probably mounted too early: Express passes an error only to handlers that are mounted
 * after the place where it arose.
 *
 * @param res the answer of a refused call.
 */
export function warnOfUnusedEnvelope(
  res: ServerResponse,
  path: string,
  requestId: string,
  logger: Logger,
): void {
  if (unused.size === 0 || !isPageOfExpress(res)) return
  unused.clear()
  logger.warn(
    { requestId, path },
    'errorEnvelope: no error has reached it, and Express answered this refused call with a page of its own; mount it after all routes',
  )
}

/** Whether Express's last handler has answered: only that one sends these headers. */
function isPageOfExpress(res: ServerResponse): boolean {
  return (
    res.getHeader('content-security-policy') === "default-src 'none'" &&
    `${res.getHeader('content-type')}`.startsWith('text/html')
  )
}
