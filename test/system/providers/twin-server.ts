import {
  createServer as createHttpServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { CleanUp } from '../../support/clean-up.ts'
import { type ConnectProxy, connectProxy } from '../../support/connect-proxy.ts'
import { ownAuthority } from '../../support/own-authority.ts'

/** A request as a twin sees it. */
export interface TwinRequest {
  readonly method: string
  readonly host: string
  readonly path: string
  readonly query: URLSearchParams
  readonly headers: IncomingHttpHeaders
  readonly raw: Buffer
  readonly json: Readonly<Record<string, unknown>>
}

/** The answer of a twin: JSON, or pieces of a stream. */
export interface TwinAnswer {
  readonly status?: number
  readonly body?: unknown
  readonly type?: string
  readonly pieces?: readonly (string | Uint8Array)[]
}

/** The stand-in of a provider: takes what the real one takes, and refuses the rest as that does. */
export type Twin = (request: TwinRequest) => TwinAnswer | Promise<TwinAnswer>

/** All twins behind one proxy, at the addresses of the real ones. */
export interface TwinWorld {
  readonly proxy: ConnectProxy
  readonly caFile: string
  /** The port of the twins over plain HTTP. */
  readonly port: number
}

/** Starts twins by their hosts, over https with certificates of their names, and over http. */
export async function startTwins(
  cleanUp: CleanUp,
  twins: Readonly<Record<string, Twin>>,
): Promise<TwinWorld> {
  const authority = ownAuthority(cleanUp)
  const { cert, key } = authority.certify('twins', Object.keys(twins))
  const serve = (req: IncomingMessage, res: ServerResponse): void => {
    answer(req, res, twins).catch((error) => res.writeHead(599).end(String(error)))
  }
  const servers = [createHttpsServer({ cert, key }, serve), createHttpServer(serve)] as const
  const [secure, plain] = await Promise.all(
    servers.map(async (server) => {
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
      cleanUp.after(() => {
        server.close()
        server.closeAllConnections()
      })
      return (server.address() as AddressInfo).port
    }),
  )
  const proxy = await connectProxy(cleanUp, () => secure ?? 0)
  return { proxy, caFile: authority.caFile, port: plain ?? 0 }
}

async function answer(
  req: IncomingMessage,
  res: ServerResponse,
  twins: Readonly<Record<string, Twin>>,
): Promise<void> {
  const chunks: Buffer[] = []
  for await (const chunk of req) chunks.push(chunk as Buffer)
  const raw = Buffer.concat(chunks)
  const host = (req.headers.host ?? '').replace(/:\d+$/, '')
  const { pathname, searchParams } = new URL(req.url ?? '/', 'http://twin')
  const isJson = String(req.headers['content-type']).startsWith('application/json')
  const twin = twins[host]
  if (!twin) throw new Error(`there is no twin at ${host}`)
  const {
    status = 200,
    body,
    type,
    pieces,
  } = await twin({
    method: req.method ?? '',
    host,
    path: pathname,
    query: searchParams,
    headers: req.headers,
    raw,
    json: isJson ? JSON.parse(raw.toString()) : {},
  })
  res.writeHead(status, { 'content-type': type ?? (pieces ? 'text/event-stream' : 'application/json') })
  for (const piece of pieces ?? []) res.write(piece)
  res.end(pieces ? undefined : JSON.stringify(body))
}
