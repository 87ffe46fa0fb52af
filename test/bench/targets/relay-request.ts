/**
 * The relay as one writes it with undici's documented API: `request()` and `pipeline()`, with back-pressure, nothing
 * looked at. Beside `relay`, which is tuned by hand, it shows what the convenient way costs.
 */

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { pipeline } from 'node:stream/promises'
import { type Dispatcher, Pool } from 'undici'

const pool = new Pool(process.env.UPSTREAM ?? '', { headersTimeout: 0, bodyTimeout: 0 })

async function relay(req: IncomingMessage, res: ServerResponse): Promise<void> {
  const chunks: Buffer[] = []
  for await (const chunk of req) chunks.push(chunk as Buffer)
  const { host, connection, 'content-length': _, ...headers } = req.headers
  const answer = await pool.request({
    path: req.url ?? '/',
    method: (req.method ?? 'GET') as Dispatcher.HttpMethod,
    headers,
    body: Buffer.concat(chunks),
  })
  const { connection: __, 'keep-alive': ___, 'transfer-encoding': ____, ...kept } = answer.headers
  res.writeHead(answer.statusCode, kept as Record<string, string>)
  await pipeline(answer.body, res)
}

const server = createServer((req, res) => {
  relay(req, res).catch(() => res.destroy())
})
server.keepAliveTimeout = 120_000
server.listen(Number(process.env.PORT ?? 0), '127.0.0.1', 4096, () => {
  process.stdout.write(`listening ${(server.address() as AddressInfo).port}\n`)
})
