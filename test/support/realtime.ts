import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import type { TestContext } from 'node:test'
import { WebSocket } from 'ws'
import { type ErrorEnvelope, envelopeIn } from './answer-bodies.ts'
import { bytesOf } from './byte-upstream.ts'
import { type ForwardGateway, type ForwardGatewayOptions, forwardGateway } from './forward-gateway.ts'
import { KEY } from './gateway.ts'

export const RULES = [{ path: '/v1/realtime', lines: ['line-0'], price: { perRequest: '0.02' } }]

/** A gateway whose realtime sessions go to a line at `url`. */
export const realtime = (t: TestContext, url: string, options: Partial<ForwardGatewayOptions> = {}) =>
  forwardGateway(t, { lines: [url], rules: RULES, ...options })

/** Begins a session. */
export function connect(
  gateway: ForwardGateway,
  headers: Record<string, string> = { authorization: `Bearer ${KEY}` },
  protocols: string[] = [],
): WebSocket {
  const socket = new WebSocket(`${gateway.url.replace('http', 'ws')}/v1/realtime?model=voice`, protocols, {
    headers,
  })
  socket.on('error', () => {})
  return socket
}

/** The answer to a handshake that was refused. */
export async function refusal(
  socket: WebSocket,
): Promise<{ response: IncomingMessage; envelope: ErrorEnvelope }> {
  const [, response] = await once(socket, 'unexpected-response')
  return { response, envelope: envelopeIn(JSON.parse(String(await bytesOf(response)))) }
}
