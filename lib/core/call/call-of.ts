import type { IncomingMessage, ServerResponse } from 'node:http'
import { Call, type CallOptions } from './call.ts'
import type { CallTarget } from './lifecycle.ts'
import { UPGRADE, type Upgrade } from './upgraded.ts'

/** Of the whole process: two copies of this package share the call of a request. */
const CALL = Symbol.for('express-model-gateway call')

/** On a request whose call something asked for before it was opened. */
export const UNASKED = Symbol('a call that nobody had opened')

/** A request, with the mark of a call that nobody had opened. */
export type Unasked = IncomingMessage & { [UNASKED]?: true }

type CallCarrier = IncomingMessage & { [CALL]?: Call; [UPGRADE]?: Upgrade; res?: ServerResponse }

/**
 * Opens the call of a request. If the request has a call already, that one is returned.
 *
 * @param target the response, or the socket of an upgraded connection. A request that `noteUpgrade` noted answers on
 *   its socket in any case.
 * @example
 * const call = openCall(req, res, { logger: pino() })
 * console.log(call.id)
 */
export function openCall(req: IncomingMessage, target: CallTarget, options?: CallOptions): Call {
  const carrier = req as CallCarrier
  carrier[CALL] ??= new Call(req, carrier[UPGRADE]?.socket ?? target, options)
  return carrier[CALL]
}

/**
 * Returns the call of a request. It is opened with defaults if `beginCall` is not mounted, so that each middleware
 * works alone.
 *
 * @throws TypeError if the request is not one of Express: then it has no response.
 * @example
 * app.post('/chat', authenticate({ keys }), (req, res) => res.json({ account: callOf(req).principal?.accountId }))
 */
export function callOf(req: IncomingMessage): Call {
  const carrier = req as CallCarrier
  if (carrier[CALL]) return carrier[CALL]
  if (!carrier.res)
    throw new TypeError('callOf(req) needs a request of an Express app, or openCall(req, res) before it')
  ;(req as Unasked)[UNASKED] = true
  return openCall(req, carrier.res)
}
