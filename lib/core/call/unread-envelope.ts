import type { ServerResponse } from 'node:http'
import type { Logger } from './logger.ts'

/** A layer of a router of Express. */
interface Layer {
  readonly handle: { readonly stack?: readonly Layer[] }
  /** What the last match took of the path. */
  readonly path?: string
  match(path: string): boolean
}

/** The handlers of `errorEnvelope` that nobody was told of. */
const envelopes = new WeakSet<object>()

/** Notes a handler of `errorEnvelope`, so that the operator is told if it is mounted too early. */
export function noteEnvelope(handler: object): void {
  envelopes.add(handler)
}

/**
 * Tells the operator once of an `errorEnvelope` that this request went past: an error looks for a handler behind the place
 * where it arose. An app that answers errors itself, or leaves them to Express without an `errorEnvelope` on the way, is
 * as it should be.
 *
 * @param res the answer of a refused call whose error no `errorEnvelope` got.
 */
export function tellUnreadEnvelope(
  res: ServerResponse,
  path: string,
  requestId: string,
  logger: Logger,
): void {
  if (!isPageOfExpress(res)) return
  const { app } = res.req as { app?: { _router?: { stack?: Layer[] }; router?: { stack?: Layer[] } } }
  // Express 4 has the first, and throws at the second.
  const { stack = [] } = app?._router ?? app?.router ?? {}
  const passed = search(stack, path)
  if (!passed) return
  envelopes.delete(passed)
  logger.warn(
    { requestId, path },
    'errorEnvelope: it is mounted before the route that refused this call, so Express answered with a page of its own; mount it after all routes',
  )
}

/** Whether Express's last handler has answered: nobody else sets these. */
function isPageOfExpress(res: ServerResponse): boolean {
  return (
    res.getHeader('content-security-policy') === "default-src 'none'" &&
    `${res.getHeader('content-type')}`.startsWith('text/html')
  )
}

/** A path that cannot be decoded, or another kind of app, is no reason to leave the end of a call undone. */
function search(stack: readonly Layer[], path: string): object | undefined {
  try {
    return envelopeOn(stack, path)
  } catch {
    return undefined
  }
}

function envelopeOn(stack: readonly Layer[], path: string): object | undefined {
  for (const layer of stack) {
    if (!layer.match(path)) continue
    const { handle } = layer
    if (envelopes.has(handle)) return handle
    const rest = path.slice(layer.path?.length ?? 0)
    const inside = Array.isArray(handle.stack) ? envelopeOn(handle.stack, rest || '/') : undefined
    if (inside) return inside
  }
  return undefined
}
