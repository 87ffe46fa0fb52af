import { randomInt } from 'node:crypto'
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

/** The members of the body of a chat that tests read. */
export interface ChatRequestBody {
  readonly model: string
  readonly messages: readonly { readonly content?: unknown; readonly tool_calls?: unknown }[]
  readonly [member: string]: unknown
}

/** A request as an upstream received it. */
export interface ReceivedRequest {
  readonly method: string
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly raw: Buffer
  readonly json: ChatRequestBody
  /** Becomes true when the gateway cut the connection before the response was complete. */
  cut: boolean
}

/** The handler of an upstream's requests. */
export type UpstreamScript = (
  res: ServerResponse,
  request: ReceivedRequest,
  index: number,
) => void | Promise<void>

/** A real HTTP server on loopback that runs the script of a test. */
export interface ScriptedUpstream {
  /** `http://127.0.0.1:port` */
  readonly url: string
  /** Everything received so far. */
  readonly requests: ReceivedRequest[]
  /** Connections open now. */
  readonly connections: ReadonlySet<Socket>
  /** Replaces the script. */
  script: UpstreamScript
  close(): Promise<void>
}

/** Starts a scripted upstream; by default it answers every chat request with "Hello". */
export async function startUpstream(
  script: UpstreamScript = (res) => chatAnswer(res),
): Promise<ScriptedUpstream> {
  const requests: ReceivedRequest[] = []
  const connections = new Set<Socket>()
  // Providers keep connections for longer than Node does, whose 5 s pass while a busy machine makes the gateway wait.
  const server = createServer({ keepAliveTimeout: 60_000 }, (req, res) => {
    void receive(req).then(async (request) => {
      requests.push(request)
      res.on('close', () => {
        request.cut = !res.writableFinished
      })
      await upstream.script(res, request, requests.length - 1)
    })
  })
  server.on('connection', (socket) => {
    connections.add(socket)
    socket.on('close', () => connections.delete(socket))
    socket.on('error', () => {})
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const upstream: ScriptedUpstream = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    connections,
    script,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
  return upstream
}

/** A larger body is parsed only for who reads it: some tests send hundreds that take as many seconds. */
const PARSED_AT_ONCE = 1024 * 1024

async function receive(req: IncomingMessage): Promise<ReceivedRequest> {
  const chunks: Buffer[] = []
  for await (const chunk of req) chunks.push(chunk as Buffer)
  const raw = Buffer.concat(chunks)
  const isForm = req.headers['content-type']?.startsWith('multipart/')
  const parse = (): ChatRequestBody => JSON.parse(raw.length > 0 && !isForm ? raw.toString() : '{}')
  let parsed = raw.length > PARSED_AT_ONCE ? undefined : parse()
  return {
    method: req.method ?? '',
    path: req.url ?? '',
    headers: req.headers,
    raw,
    get json() {
      parsed ??= parse()
      return parsed
    },
    cut: false,
  }
}

/** Answers with JSON. */
export function answerJson(
  res: ServerResponse,
  status: number,
  body: unknown,
  headers: Record<string, string> = {},
): void {
  res.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))
}

/** A whole OpenAI-style completion. */
export function chatAnswer(res: ServerResponse, text = 'Hello', extra: Record<string, unknown> = {}): void {
  res.writeHead(200, { 'content-type': 'application/json' }).end(chatAnswerOf(text, extra))
}

/** The JSON of {@link chatAnswer}. */
export function chatAnswerOf(text: string, extra: Record<string, unknown> = {}): string {
  return JSON.stringify({
    id: 'chatcmpl-1',
    object: 'chat.completion',
    created: 1,
    model: 'upstream-model',
    choices: [{ index: 0, message: { role: 'assistant', content: text }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 },
    ...extra,
  })
}

/** A whole Anthropic-style message. */
export function messageAnswer(
  res: ServerResponse,
  text = 'Hello',
  extra: Record<string, unknown> = {},
): void {
  answerJson(res, 200, {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'upstream-model',
    content: [{ type: 'text', text }],
    stop_reason: 'end_turn',
    stop_sequence: null,
    usage: { input_tokens: 7, output_tokens: 3 },
    ...extra,
  })
}

/** The event of one chat chunk. */
export function chatChunk(
  delta: object,
  finish: string | null = null,
  extra: Record<string, unknown> = {},
): string {
  const choices = [{ index: 0, delta, finish_reason: finish }]
  const chunk = {
    id: 'chatcmpl-1',
    object: 'chat.completion.chunk',
    created: 1,
    model: 'upstream-model',
    choices,
    ...extra,
  }
  return `data: ${JSON.stringify(chunk)}\n\n`
}

/** All events of a chat stream that says `words`, with a usage chunk. */
export function chatEvents(words: readonly string[]): string[] {
  return [
    chatChunk({ role: 'assistant', content: '' }),
    ...words.map((content) => chatChunk({ content })),
    chatChunk({}, 'stop'),
    `data: ${JSON.stringify({ id: 'chatcmpl-1', object: 'chat.completion.chunk', choices: [], usage: { prompt_tokens: 7, completion_tokens: words.length, total_tokens: 7 + words.length } })}\n\n`,
    'data: [DONE]\n\n',
  ]
}

/** One Anthropic-style event. */
export function messageEvent(type: string, body: object = {}): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...body })}\n\n`
}

/** All events of a message stream that says `words`. */
export function messageEvents(words: readonly string[]): string[] {
  const message = {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'upstream-model',
    content: [],
    stop_reason: null,
    stop_sequence: null,
  }
  return [
    messageEvent('message_start', { message: { ...message, usage: { input_tokens: 7, output_tokens: 1 } } }),
    messageEvent('content_block_start', { index: 0, content_block: { type: 'text', text: '' } }),
    messageEvent('ping'),
    ...words.map((text) =>
      messageEvent('content_block_delta', { index: 0, delta: { type: 'text_delta', text } }),
    ),
    messageEvent('content_block_stop', { index: 0 }),
    messageEvent('message_delta', {
      delta: { stop_reason: 'end_turn', stop_sequence: null },
      usage: { output_tokens: words.length },
    }),
    messageEvent('message_stop'),
  ]
}

/** Streams events, each in a write of its own, with `paceMs` between them; ends the response unless `end` is false. */
export async function stream(
  res: ServerResponse,
  events: readonly string[],
  { paceMs = 0, end = true }: { paceMs?: number; end?: boolean } = {},
): Promise<void> {
  res.writeHead(200, { 'content-type': 'text/event-stream' })
  for (const event of events) {
    if (res.destroyed) return
    res.write(event)
    if (paceMs > 0) await sleep(paceMs)
  }
  if (end) res.end()
}

/**
 * Returns a port on which nothing listens. The system gives it to nobody who asks for any port: a server of another test would
 * answer there.
 */
export async function closedPort(): Promise<number> {
  for (;;) {
    const port = randomInt(20_000, 30_000)
    const socket = connect(port, '127.0.0.1')
    const isClosed = await new Promise<boolean>((resolve) =>
      socket.once('error', () => resolve(true)).once('connect', () => resolve(false)),
    )
    socket.destroy()
    if (isClosed) return port
  }
}
