import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { loadOptional } from '../config/packages.ts'
import { writeAnswers } from './answer.ts'
import { serveAudio } from './audio.ts'
import { chatCompletions } from './chat-completions.ts'
import { completions } from './completions.ts'
import { type DataEndpoint, wholeAnswer } from './data-endpoint.ts'
import { embeddings } from './embeddings.ts'
import { Fault, faultResponse, type Provider } from './faults.ts'
import { DemoFiles } from './files.ts'
import { images } from './images.ts'
import { messages } from './messages.ts'
import { getModel, listModels } from './model-list.ts'
import { type DemoModel, demoModel } from './models.ts'
import { readBody } from './read-body.ts'
import { rerank } from './rerank.ts'
import { responses } from './responses.ts'
import { sendAnswer } from './send-answer.ts'
import { sendJson } from './send-json.ts'
import { StoredResponses } from './stored-responses.ts'
import { newId, type TextEndpoint } from './text-endpoint.ts'
import type { VideoPace } from './video-tasks.ts'
import { VideoServer } from './videos.ts'

export interface DemoModelsOptions {
  /** Port to listen on. Defaults to 0, any free one. */
  readonly port?: number
  /** Address to listen on. Defaults to `127.0.0.1`. */
  readonly host?: string
  /** The only valid key, as `Authorization: Bearer` or `x-api-key`. By default any key is valid. */
  readonly apiKey?: string
  /** Milliseconds before each chunk of a stream. Defaults to 15. */
  readonly paceMs?: number
  /** Milliseconds before the first byte of `demo-slow`. Defaults to 5000. */
  readonly slowMs?: number
  /** How long a video is queued and how long it runs, in milliseconds. Defaults to 1000 and 2000. */
  readonly videoPace?: VideoPace
  /** Most bytes of a request body. Defaults to 32 MiB. */
  readonly bodyLimitBytes?: number
}

export interface DemoModels {
  /** The origin, such as `http://127.0.0.1:40123`. Base URLs of lines are `${url}/v1` and, task-style, `${url}/api/v3`. */
  readonly url: string
  /** Stops the server and its running calls. */
  readonly close: () => Promise<void>
}

const TEXT_ENDPOINTS: ReadonlyMap<string, TextEndpoint> = new Map([
  ['/v1/chat/completions', chatCompletions],
  ['/v1/completions', completions],
  ['/v1/messages', messages],
])

const DATA_ENDPOINTS: ReadonlyMap<string, DataEndpoint> = new Map([
  ['/v1/embeddings', embeddings],
  ['/v1/images/generations', images],
  ['/v1/rerank', rerank],
])

/**
 * Starts a small model server with the OpenAI-style and the Anthropic-style protocol, whose texts say that it is a demo. It
 * serves `POST /v1/chat/completions`, `/v1/completions`, `/v1/responses`, `/v1/embeddings`,
 * `/v1/images/generations`, `/v1/rerank`, `/v1/messages` and `/v1/messages/count_tokens`, `GET` and `DELETE` of
 * `/v1/responses/{id}`, `GET /v1/models` and `GET /v1/models/{id}`, `/v1/files`, `/v1/audio/speech`,
 * `/v1/audio/transcriptions`, WebSockets on `/v1/realtime`, and videos on both kinds of upstream, `/v1/videos` and
 * `/api/v3/contents/generations/tasks`. The requested model decides what happens (`DEMO_MODELS`). Rejects if the
 * address is not available.
 *
 * @example
 * const demo = await startDemoModels({ port: 8790 })
 * const client = new OpenAI({ baseURL: `${demo.url}/v1`, apiKey: 'any' })
 */
export async function startDemoModels(options: DemoModelsOptions = {}): Promise<DemoModels> {
  const { port = 0, host = '127.0.0.1', apiKey, paceMs = 15, slowMs = 5000 } = options
  const { bodyLimitBytes = 32 * 1024 * 1024 } = options
  const { videoPace = { waitMs: 1000, makeMs: 2000 } } = options
  const calls = new Map<string, number>()
  const stored = new StoredResponses()
  const textEndpoints = new Map([...TEXT_ENDPOINTS, ['/v1/responses', responses(stored)]])
  const files = new DemoFiles(bodyLimitBytes)
  // Without the package that it needs, there is no such path.
  const module = await loadOptional(() => import('./realtime.ts'))
  const realtime = module && new module.DemoRealtime()
  const videos = new VideoServer(videoPace, bodyLimitBytes)

  async function respond(req: IncomingMessage, res: ServerResponse, left: AbortSignal): Promise<void> {
    const path = pathOf(req)
    const video = videos.serves(path)
    if (video !== 'public') requireKey(req, apiKey)
    if (video !== undefined) return videos.respond(req, res, path)
    if (req.method === 'GET' && path === '/v1/models') return sendJson(res, listModels(providerOf(req)))
    if (req.method === 'GET' && path.startsWith('/v1/models/')) {
      return sendJson(res, getModel(path.slice('/v1/models/'.length), providerOf(req)))
    }
    const dataEndpoint = DATA_ENDPOINTS.get(path)
    if (req.method === 'POST' && dataEndpoint !== undefined) return sendData(req, res, dataEndpoint, left)
    if (path.startsWith('/v1/responses/')) return sendJson(res, stored.answer(req.method, path))
    if (await files.serve(req, res, path)) return
    if (await serveAudio(req, res, path, bodyLimitBytes)) return
    const counts = path === '/v1/messages/count_tokens'
    const endpoint = counts ? messages : textEndpoints.get(path)
    if (req.method !== 'POST' || endpoint === undefined) {
      throw new Fault('unknown_path', { message: `The demo model server has no ${req.method} ${path}.` })
    }
    if (endpoint.provider === 'anthropic') requireVersion(req)
    const body = await readBody(req, bodyLimitBytes)
    const prompt = endpoint.read(counts ? { ...body, max_tokens: 1 } : body)
    const model = modelOf(prompt)
    if (counts) return sendJson(res, { input_tokens: prompt.inputTokens })
    refuseIfModelDoes(model, prompt, calls)
    const rendering = endpoint.render(prompt, writeAnswers(prompt, model))
    await sendAnswer(res, { stream: prompt.stream, model, rendering }, { paceMs, slowMs }, left)
  }

  async function sendData(
    req: IncomingMessage,
    res: ServerResponse,
    endpoint: DataEndpoint,
    left: AbortSignal,
  ): Promise<void> {
    const asked = endpoint.read(await readBody(req, bodyLimitBytes))
    const model = modelOf(asked)
    refuseIfModelDoes(model, asked, calls)
    const rendering = wholeAnswer(await asked.answer(model.withholds !== undefined))
    await sendAnswer(res, { stream: false, model, rendering }, { paceMs, slowMs }, left)
  }

  const server = createServer(
    { shouldUpgradeCallback: (req) => realtime !== undefined && beginsRealtime(req) },
    (req, res) => {
      const left = new AbortController()
      res.once('close', () => left.abort())
      const provider = providerOf(req)
      const requestId = newId('req_demo_')
      res.setHeader(provider === 'openai' ? 'x-request-id' : 'request-id', requestId)
      respond(req, res, left.signal).catch((error: unknown) => {
        if (left.signal.aborted || req.errored !== null) return // the caller has left
        if (!(error instanceof Fault)) process.emitWarning(error instanceof Error ? error : String(error))
        if (res.headersSent) return void res.destroy()
        const fault = error instanceof Fault ? error : new Fault('server_error')
        const { status, headers, body } = faultResponse(fault, provider, requestId)
        sendJson(res, body, status, headers)
      })
    },
  )
  server.on('upgrade', (req, socket, head) => {
    try {
      requireKey(req, apiKey)
      realtime?.accept(req, socket, head)
    } catch {
      socket.end('HTTP/1.1 401 Unauthorized\r\nconnection: close\r\ncontent-length: 0\r\n\r\n')
    }
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(port, host, resolve)
  })
  const { address, family, port: listening } = server.address() as AddressInfo
  return {
    url: `http://${family === 'IPv6' ? `[${address}]` : address}:${listening}`,
    close: () =>
      new Promise((resolve, reject) => {
        server.close((error) => (error === undefined ? resolve() : reject(error)))
        server.closeAllConnections()
        realtime?.close()
      }),
  }
}

function beginsRealtime(req: IncomingMessage): boolean {
  return pathOf(req) === '/v1/realtime' && req.headers.upgrade?.toLowerCase() === 'websocket'
}

function pathOf(req: IncomingMessage): string {
  const [path = ''] = (req.url ?? '').split('?')
  return path
}

/** Returns the provider of a path. For common and unknown paths, the version header decides. */
function providerOf(req: IncomingMessage): Provider {
  if (pathOf(req).startsWith('/v1/messages')) return 'anthropic'
  return (
    TEXT_ENDPOINTS.get(pathOf(req))?.provider ?? (req.headers['anthropic-version'] ? 'anthropic' : 'openai')
  )
}

/** Checks all credentials of a request, so that tests notice a proxy that passes on a second one. */
function requireKey(req: IncomingMessage, apiKey: string | undefined): void {
  const bearer = /^Bearer +(.+)$/i.exec(req.headers.authorization ?? '')?.[1]
  const given = [bearer, req.headers['x-api-key']].filter((key) => key !== undefined && key !== '')
  if (given.length === 0) throw new Fault('missing_key')
  if (apiKey !== undefined && given.some((key) => key !== apiKey)) throw new Fault('invalid_key')
}

function requireVersion(req: IncomingMessage): void {
  if (req.headers['anthropic-version'] === undefined) {
    throw new Fault('invalid_request', { message: 'anthropic-version: header is required' })
  }
}

function modelOf({ model: id }: { readonly model: string }): DemoModel {
  const model = demoModel(id)
  if (model === undefined) throw new Fault('unknown_model', { model: id, param: 'model' })
  return model
}

function refuseIfModelDoes(
  model: DemoModel,
  { inputTokens }: { readonly inputTokens: number },
  calls: Map<string, number>,
): void {
  const call = (calls.get(model.id) ?? 0) + 1
  calls.set(model.id, call)
  if (model.refuses === undefined || call % (model.everyNth ?? 1) !== 0) return
  throw new Fault(model.refuses, { inputTokens })
}
