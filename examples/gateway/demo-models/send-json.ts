import type { ServerResponse } from 'node:http'

export function sendJson(
  res: ServerResponse,
  body: object,
  status = 200,
  headers: Readonly<Record<string, string>> = {},
): void {
  const bytes = Buffer.from(JSON.stringify(body))
  res.writeHead(status, { 'content-type': 'application/json', 'content-length': bytes.length, ...headers })
  res.end(bytes)
}
