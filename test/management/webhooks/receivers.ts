import { once } from 'node:events'
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Webhook } from 'standardwebhooks'
import type { CleanUp } from '../../support/clean-up.ts'

/** A message that a receiver has verified with the library of Standard Webhooks. */
export interface Received {
  readonly id: string
  readonly type: string
  readonly timestamp: string
  readonly data: { readonly n?: number } & Record<string, unknown>
  readonly body: string
  readonly at: number
}

export interface Receiver {
  readonly url: string
  /** The messages that it has verified, in the order in which they came. */
  readonly received: Received[]
  /** How many requests have come, verified or not. */
  requests: number
  /** Answers instead of 204; may leave the request open. */
  answer: ((req: IncomingMessage, res: ServerResponse, body: string) => void) | undefined
}

/** Starts a real receiver on the loopback. */
export async function startReceiver(t: CleanUp, secret: () => string, host = '127.0.0.1'): Promise<Receiver> {
  const receive: RequestListener = async (req, res) => {
    receiver.requests++
    let body = ''
    for await (const chunk of req.setEncoding('utf8')) body += chunk
    if (receiver.answer) receiver.answer(req, res, body)
    else {
      const verified = new Webhook(secret()).verify(body, req.headers as Record<string, string>)
      const id = String(req.headers['webhook-id'])
      receiver.received.push({ ...(verified as Received), id, body, at: Date.now() })
      res.writeHead(204).end()
    }
  }
  const server = createServer((req, res) => {
    Promise.resolve(receive(req, res)).catch((error: unknown) => res.writeHead(401).end(String(error)))
  }).listen(0, host)
  await once(server, 'listening')
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port, family, address } = server.address() as AddressInfo
  const url = `http://${family === 'IPv6' ? `[${address}]` : address}:${port}/hook?of=acme`
  const receiver: Receiver = { url, received: [], requests: 0, answer: undefined }
  return receiver
}

/** The numbers in what a receiver has verified. */
export function numbersOf({ received }: Receiver): (number | undefined)[] {
  return received.map(({ data }) => data.n)
}
