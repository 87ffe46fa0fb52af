/**
 * A stand-in for a provider that the gateway does not know. It has the OpenAI-style protocol with deviations: the key is in
 * another header, a project header is required, the paths have another prefix, models have other names, and chat
 * completions are the only endpoint.
 */

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'

/** The values that the provider demands of a request. */
export interface ProviderOptions {
  readonly key: string
  readonly project: string
}

const PATH = '/inference/v2/chat/completions'
const MODEL = 'orchard/apple-7b-instruct@2026-01'

/** Creates the provider's server. */
export function createProvider(options: ProviderOptions): Server {
  return createServer((req, res) => void respond(req, res, options))
}

async function respond(req: IncomingMessage, res: ServerResponse, { key, project }: ProviderOptions) {
  const chunks: Buffer[] = []
  for await (const chunk of req) chunks.push(chunk as Buffer)
  if (req.headers['orchard-key'] !== key) return refuse(res, 401, 'who are you?')
  if (req.headers['orchard-project'] !== project) return refuse(res, 403, 'no such project')
  if (req.method !== 'POST' || req.url !== PATH) return refuse(res, 404, `no ${req.method} ${req.url}`)
  const { model, messages, stream } = JSON.parse(Buffer.concat(chunks).toString()) as {
    model: string
    messages: readonly { content: unknown }[]
    stream?: boolean
  }
  if (model !== MODEL) return refuse(res, 404, `no model ${model}`)
  const words = `An apple says: ${messages.at(-1)?.content}`.split(/(?<= )/)
  const usage = { prompt_tokens: 8, completion_tokens: words.length, total_tokens: 8 + words.length }
  if (stream) answerStreamed(res, words, usage)
  else answerWhole(res, words.join(''), usage)
}

function answerWhole(res: ServerResponse, content: string, usage: object): void {
  const choices = [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }]
  sendJson(res, 200, { id: 'o-1', object: 'chat.completion', created: 0, model: MODEL, choices, usage })
}

function answerStreamed(res: ServerResponse, words: readonly string[], usage: object): void {
  const send = (choices: readonly object[], more: object = {}) =>
    res.write(
      `data: ${JSON.stringify({ id: 'o-1', object: 'chat.completion.chunk', created: 0, model: MODEL, choices, ...more })}\n\n`,
    )
  res.writeHead(200, { 'content-type': 'text/event-stream' })
  for (const content of words) send([{ index: 0, delta: { content }, finish_reason: null }])
  send([{ index: 0, delta: {}, finish_reason: 'stop' }])
  send([], { usage })
  res.end('data: [DONE]\n\n')
}

/** Sends an error in the provider's own form. */
function refuse(res: ServerResponse, status: number, fault: string): void {
  sendJson(res, status, { fault })
}

function sendJson(res: ServerResponse, status: number, body: object): void {
  res.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}
