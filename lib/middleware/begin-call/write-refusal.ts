import type { ServerResponse } from 'node:http'
import type { Call } from '../../core/call/index.ts'
import type { GatewayError } from '../../core/errors/index.ts'

/** Refuses a call outside an app's chain, where no `errorEnvelope` writes its answer. */
export function writeRefusal(res: ServerResponse, call: Call, refusal: GatewayError): void {
  const error = call.stamp(refusal)
  call.fail(error)
  for (const [name, value] of Object.entries(error.headers)) res.setHeader(name, value)
  const body = Buffer.from(JSON.stringify(call.protocol.errorBody(error, call.id)))
  res.setHeader('content-type', 'application/json; charset=utf-8')
  res.writeHead(error.status, { 'content-length': body.length, connection: 'close' })
  res.end(body)
}
