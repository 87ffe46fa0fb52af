import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A request as the upstream received it. */
export interface VideoRequest {
  readonly method: string
  readonly path: string
  readonly headers: IncomingHttpHeaders
  /** The body's members, of JSON or of a form; files as `File`. */
  readonly body: Record<string, unknown>
}

/** A task as the upstream has it; its status is one of its own words. */
export interface UpstreamTask {
  readonly id: string
  readonly created: Record<string, unknown>
  status: string
  /** Members that its reads have besides the usual ones. */
  told: Record<string, unknown>
}

export type VideoScript = (req: VideoRequest, res: ServerResponse) => boolean | Promise<boolean>

/** Serves both kinds of line: `/v1/videos` and `/api/v3/contents/generations/tasks`, over one list of tasks. */
export interface VideoUpstream {
  readonly url: string
  readonly requests: VideoRequest[]
  readonly tasks: Map<string, UpstreamTask>
  /** The task made last. */
  readonly last: UpstreamTask
  /** The content of a task. */
  content: Buffer
  /** Where the tasks of the task-style kind say that their video is. Defaults to this server. */
  videoUrl: string | undefined
  /** Sees each request first; true: it has been answered, or will be. */
  script: VideoScript
  /** Requests of a method and of paths that end so. */
  seen(method: string, end?: string): VideoRequest[]
  close(): Promise<void>
}

/** Starts one on a free port of loopback. */
export async function startVideoUpstream(): Promise<VideoUpstream> {
  const requests: VideoRequest[] = []
  const tasks = new Map<string, UpstreamTask>()
  const server = createServer((req, res) => {
    void receive(req).then(async (request) => {
      requests.push(request)
      if (!(await upstream.script(request, res))) serve(upstream, request, res)
    })
  })
  server.on('connection', (socket) => socket.on('error', () => {}))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const upstream: VideoUpstream = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    tasks,
    get last() {
      const last = [...tasks.values()].at(-1)
      if (!last) throw new Error('no task was made')
      return last
    },
    content: Buffer.from('not really a video, but as long as it has to be'),
    videoUrl: undefined,
    script: () => false,
    seen: (method, end = '') =>
      requests.filter((request) => request.method === method && pathOf(request).endsWith(end)),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
  return upstream
}

const TASKS = '/api/v3/contents/generations/tasks'
const pathOf = ({ path }: VideoRequest): string => path.split('?')[0] ?? ''

function serve(upstream: VideoUpstream, request: VideoRequest, res: ServerResponse): void {
  const path = pathOf(request)
  const isArk = path.startsWith(TASKS)
  const [id = '', rest] = path.slice((isArk ? TASKS : '/v1/videos').length + 1).split('/')
  if (path.startsWith('/files/')) sendContent(upstream, request, res)
  else if (request.method === 'POST' && (id === '' || rest === 'remix')) {
    const task: UpstreamTask = {
      id: `up-${upstream.tasks.size + 1}`,
      created: { ...upstream.tasks.get(id)?.created, ...request.body },
      status: 'queued',
      told: {},
    }
    upstream.tasks.set(task.id, task)
    json(res, 200, isArk ? { id: task.id } : videoOf(task))
  } else serveTask(upstream, request, res, { id, rest, isArk })
}

function serveTask(
  upstream: VideoUpstream,
  request: VideoRequest,
  res: ServerResponse,
  { id, rest, isArk }: { id: string; rest: string | undefined; isArk: boolean },
): void {
  const task = upstream.tasks.get(id)
  if (!task) json(res, 404, { error: { code: 'not_found', message: `no ${id} here` } })
  else if (rest === 'content') sendContent(upstream, request, res)
  else if (request.method === 'GET') json(res, 200, isArk ? taskOf(task, upstream) : videoOf(task))
  else if (task.status === 'running' || task.status === 'in_progress')
    json(res, 409, { error: { code: 'InvalidAction.Running', message: `task ${id} is running` } })
  else {
    upstream.tasks.delete(id)
    json(res, 200, isArk ? {} : { id, object: 'video.deleted', deleted: true })
  }
}

function videoOf({ id, created, status, told }: UpstreamTask): object {
  const { model = 'upstream-video', size = '720x1280', seconds = '4' } = created
  return { id, object: 'video', created_at: 1, model, status, progress: 0, size, seconds, ...told }
}

function taskOf({ id, created, status, told }: UpstreamTask, { url, videoUrl }: VideoUpstream): object {
  const { model, resolution, ratio, duration } = created
  const task = { id, model, status, created_at: 1, updated_at: 2, resolution, ratio, duration }
  if (status !== 'succeeded') return { ...task, ...told }
  const content = { video_url: videoUrl ?? `${url}/files/${id}.mp4?secret=address` }
  return { ...task, content, usage: { completion_tokens: 1000, total_tokens: 1000 }, ...told }
}

function sendContent({ content }: VideoUpstream, { headers }: VideoRequest, res: ServerResponse): void {
  const type = { 'content-type': 'video/mp4', etag: '"v1"', 'accept-ranges': 'bytes', 'set-cookie': 'a=b' }
  const [, first, last] = /^bytes=(\d+)-(\d*)$/.exec(headers.range ?? '') ?? []
  if (first === undefined) {
    res.writeHead(200, { ...type, 'content-length': content.length }).end(content)
    return
  }
  const [start, end] = [Number(first), Math.min(Number(last || content.length), content.length - 1)]
  if (start >= content.length) {
    res.writeHead(416, { ...type, 'content-range': `bytes */${content.length}` }).end()
    return
  }
  const part = content.subarray(start, end + 1)
  res
    .writeHead(206, {
      ...type,
      'content-length': part.length,
      'content-range': `bytes ${start}-${end}/${content.length}`,
    })
    .end(part)
}

export function json(res: ServerResponse, status: number, body: object, headers = {}): void {
  res.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))
}

async function receive(req: IncomingMessage): Promise<VideoRequest> {
  const chunks: Buffer[] = []
  for await (const chunk of req) chunks.push(chunk as Buffer)
  const { method = '', url: path = '', headers } = req
  return { method, path, headers, body: await bodyOf(Buffer.concat(chunks), headers['content-type'] ?? '') }
}

async function bodyOf(raw: Buffer, type: string): Promise<Record<string, unknown>> {
  if (raw.length === 0) return {}
  if (type.startsWith('application/json')) return JSON.parse(raw.toString())
  const form = await new Response(new Uint8Array(raw), { headers: { 'content-type': type } }).formData()
  return Object.fromEntries(form)
}
