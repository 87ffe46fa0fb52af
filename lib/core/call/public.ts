import type { IncomingMessage } from 'node:http'
import type { Call } from './call.ts'
import { callOf as openCallOf } from './open-call.ts'

/**
 * Returns the call of a request. It is opened with defaults if `beginCall` is not mounted, so that each middleware
 * works alone.
 *
 * @throws TypeError if the request is not one of Express: then it has no response.
 * @example
 * app.post('/chat', authenticate({ keys }), (req, res) => res.json({ account: callOf(req).principal?.accountId }))
 */
export const callOf: (req: IncomingMessage) => Call = openCallOf

export type { Call } from './call.ts'
export type { Logger } from './logger.ts'
