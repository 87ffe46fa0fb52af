import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A token endpoint that runs the script of a test. */
export interface TokenServer {
  readonly url: string
  /** The forms that it was asked with. */
  readonly forms: URLSearchParams[]
  /** The tokens that are good. */
  readonly good: Set<string>
  /** Answers a request in place of a new token; undefined = a new token. */
  script: ((res: ServerResponse, req: IncomingMessage) => void) | undefined
  /** The life of the next tokens, in seconds. */
  lifeS: number
  close(): Promise<void>
}

/** Starts a token endpoint that gives out `token-1`, `token-2`, …, each good from then on. */
export async function startTokenServer(): Promise<TokenServer> {
  let given = 0
  const server = createServer(async (req, res) => {
    const chunks: Buffer[] = []
    for await (const chunk of req) chunks.push(chunk as Buffer)
    tokens.forms.push(new URLSearchParams(Buffer.concat(chunks).toString()))
    if (tokens.script) return tokens.script(res, req)
    const token = `token-${++given}`
    tokens.good.add(token)
    res.writeHead(200, { 'content-type': 'application/json' })
    res.end(JSON.stringify({ access_token: token, token_type: 'Bearer', expires_in: tokens.lifeS }))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const tokens: TokenServer = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/oauth2/v2.0/token`,
    forms: [],
    good: new Set(),
    script: undefined,
    lifeS: 3600,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
  return tokens
}
