import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { TestContext } from 'node:test'

/** A request as the server had it. */
export interface Sent {
  readonly method: string
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
}

export type Answer = (res: ServerResponse, sent: Sent) => void

/** A server on loopback that gives one answer after the other, and the last one for ever. */
export interface AnsweringServer {
  readonly url: string
  /** Everything received so far. */
  readonly sent: readonly Sent[]
}

export async function answering(t: TestContext, ...answers: readonly Answer[]): Promise<AnsweringServer> {
  const sent: Sent[] = []
  const server = createServer(async (req, res) => {
    const chunks: Buffer[] = []
    for await (const chunk of req) chunks.push(chunk as Buffer)
    const request = {
      method: req.method ?? '',
      path: req.url ?? '',
      headers: req.headers,
      body: Buffer.concat(chunks),
    }
    sent.push(request)
    const answer = answers[Math.min(sent.length, answers.length) - 1]
    answer?.(res, request)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(
    () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  )
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, sent }
}

/** A JSON answer. */
export const json =
  (status: number, body: unknown, headers: Record<string, string> = {}): Answer =>
  (res) =>
    res.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))

/** An error of the OpenAI-style envelope. */
export const refusal = (status: number, code: string, headers: Record<string, string> = {}): Answer =>
  json(status, { error: { message: 'No.', type: 'server_error', code }, request_id: 'req_1' }, headers)

export const ANSWER = { object: 'chat.completion', choices: [] }
export const fine: Answer = json(200, ANSWER)

/** Cuts the connection behind so much of an answer, once that has been sent. */
export const cutAfter =
  (body: string, contentType = 'application/json'): Answer =>
  (res) => {
    res.writeHead(200, { 'content-type': contentType })
    res.flushHeaders()
    if (body === '') setImmediate(() => res.destroy())
    else res.write(body, () => setImmediate(() => res.destroy()))
  }

/** Cuts the connection without an answer. */
export const cut: Answer = (res) => void res.destroy()

/** A POST of JSON. */
export const post = (body: unknown = { model: 'chat' }, headers: Record<string, string> = {}) => ({
  method: 'POST',
  body: JSON.stringify(body),
  headers: { authorization: 'Bearer sk-1', 'content-type': 'application/json', ...headers },
})
