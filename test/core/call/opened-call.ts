import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { type CallOptions, openCall } from '../../../lib/core/call/index.ts'

/** A call of a request that nobody sent. */
export function opened(
  request: object = {},
  { address = '10.0.0.1', ...options }: CallOptions & { address?: string } = {},
) {
  const socket = new Socket()
  Object.defineProperty(socket, 'remoteAddress', { value: address })
  const req = Object.assign(
    new IncomingMessage(socket),
    { method: 'POST', url: '/v1/chat/completions' },
    request,
  )
  const res = new ServerResponse(req)
  return { req, res, call: openCall(req, res, options) }
}
