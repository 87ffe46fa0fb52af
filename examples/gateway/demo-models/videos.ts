import type { IncomingMessage, ServerResponse } from 'node:http'
import { Fault } from './faults.ts'
import { makeMp4 } from './mp4.ts'
import { readForm } from './multipart.ts'
import { type JsonObject, textOf } from './prompt.ts'
import { readBody } from './read-body.ts'
import { sendJson } from './send-json.ts'
import { type DemoVideo, type DemoVideoState, DemoVideos, type VideoPace } from './video-tasks.ts'

const VIDEOS = '/v1/videos'
const TASKS = '/api/v3/contents/generations/tasks'
const FILES = '/files/'
const MAX_SECONDS = 60

const OPENAI_STATUS: Readonly<Record<DemoVideoState, string>> = {
  queued: 'queued',
  running: 'in_progress',
  succeeded: 'completed',
  failed: 'failed',
}

/** Serves both protocols of video: OpenAI-style `/v1/videos`, and task-style `/api/v3/contents/generations/tasks`. */
export class VideoServer {
  readonly #videos: DemoVideos
  readonly #bodyLimitBytes: number

  constructor(pace: VideoPace, bodyLimitBytes: number) {
    this.#videos = new DemoVideos(pace)
    this.#bodyLimitBytes = bodyLimitBytes
  }

  /** Returns how a path is served; undefined if it is not. Files are public: their names are secret, as at real providers. */
  serves(path: string): 'with a key' | 'public' | undefined {
    if (path.startsWith(FILES)) return 'public'
    return path === VIDEOS || path.startsWith(`${VIDEOS}/`) || path.startsWith(TASKS)
      ? 'with a key'
      : undefined
  }

  /** Answers a request; throws a `Fault` if the real API would refuse it. */
  async respond(req: IncomingMessage, res: ServerResponse, path: string): Promise<void> {
    if (path.startsWith(FILES)) {
      this.#sendFile(req, res, this.#known(path.slice(FILES.length).replace(/\.mp4$/, '')))
      return
    }
    const isTask = path.startsWith(TASKS)
    const [id = '', rest] = path.slice((isTask ? TASKS : VIDEOS).length + 1).split('/')
    if (req.method === 'POST') {
      const source = rest === 'remix' ? this.#known(id) : undefined
      const video = await this.#create(req, isTask, source)
      sendJson(res, isTask ? { id: video.id } : this.#asVideo(video))
      return
    }
    const video = this.#known(id)
    if (req.method === 'DELETE') this.#delete(res, video, isTask)
    else if (rest === 'content') this.#sendFile(req, res, video)
    else sendJson(res, isTask ? this.#asTask(video, req) : this.#asVideo(video))
  }

  #known(id: string): DemoVideo {
    const video = this.#videos.find(id)
    if (video) return video
    throw new Fault('unknown_path', { message: `The demo model server has no video ${id}.` })
  }

  async #create(req: IncomingMessage, isTask: boolean, source: DemoVideo | undefined): Promise<DemoVideo> {
    const body = await readJsonOrForm(req, this.#bodyLimitBytes)
    const model = source?.model ?? body.model
    if (model !== 'demo-video') throw new Fault('unknown_model', { model: String(model), param: 'model' })
    const prompt = isTask ? textOf(body.content) : String(body.prompt ?? '')
    if (prompt === '')
      throw new Fault('invalid_request', { message: 'A prompt is required.', param: 'prompt' })
    const seconds = source?.seconds ?? secondsOf(body, isTask)
    return this.#videos.create(isTask ? 'cgt-demo-' : 'video_demo_', {
      model,
      prompt,
      seconds,
      remixOf: source?.id,
    })
  }

  #delete(res: ServerResponse, video: DemoVideo, isTask: boolean): void {
    if (this.#videos.stateOf(video) === 'running')
      throw new Fault('invalid_request', { message: 'A video that is being made cannot be deleted.' })
    this.#videos.delete(video)
    sendJson(res, isTask ? {} : { id: video.id, object: 'video.deleted', deleted: true })
  }

  #asVideo(video: DemoVideo): object {
    const state = this.#videos.stateOf(video)
    return {
      id: video.id,
      object: 'video',
      created_at: Math.floor(video.createdAt / 1000),
      model: video.model,
      status: OPENAI_STATUS[state],
      progress: this.#videos.progressOf(video),
      seconds: String(video.seconds),
      size: '720x1280',
      remixed_from_video_id: video.remixOf ?? null,
      error: state === 'failed' ? { code: 'demo_failure', message: 'The demo plays a failure.' } : null,
    }
  }

  #asTask(video: DemoVideo, { headers }: IncomingMessage): object {
    const state = this.#videos.stateOf(video)
    const { id, model, seconds, createdAt } = video
    const tokens = seconds * 20_000
    return {
      id,
      model,
      status: state,
      created_at: Math.floor(createdAt / 1000),
      updated_at: Math.floor(Date.now() / 1000),
      duration: seconds,
      resolution: '720p',
      ratio: '9:16',
      framespersecond: 24,
      ...(state === 'succeeded' && {
        content: { video_url: `http://${headers.host}${FILES}${id}.mp4` },
        usage: { completion_tokens: tokens, total_tokens: tokens },
      }),
      ...(state === 'failed' && { error: { code: 'DemoFailure', message: 'The demo plays a failure.' } }),
    }
  }

  #sendFile({ headers }: IncomingMessage, res: ServerResponse, video: DemoVideo): void {
    if (this.#videos.stateOf(video) !== 'succeeded')
      throw new Fault('unknown_path', { message: 'The video is not finished.' })
    const bytes = makeMp4(video.seconds, video.prompt.length)
    const type = { 'content-type': 'video/mp4', 'accept-ranges': 'bytes' }
    const [, from, to] = /^bytes=(\d+)-(\d*)$/.exec(headers.range ?? '') ?? []
    if (from === undefined) {
      res.writeHead(200, { ...type, 'content-length': bytes.length }).end(bytes)
      return
    }
    const [first, last] = [Number(from), Math.min(Number(to || bytes.length), bytes.length - 1)]
    if (first > last) {
      res.writeHead(416, { 'content-range': `bytes */${bytes.length}` }).end()
      return
    }
    const part = bytes.subarray(first, last + 1)
    const range = { 'content-range': `bytes ${first}-${last}/${bytes.length}`, 'content-length': part.length }
    res.writeHead(206, { ...type, ...range }).end(part)
  }
}

/** Reads a JSON object or a form, whose files are `File`s. */
async function readJsonOrForm(req: IncomingMessage, limitBytes: number): Promise<JsonObject> {
  const type = req.headers['content-type'] ?? ''
  if (!type.startsWith('multipart/form-data')) return readBody(req, limitBytes)
  return Object.fromEntries(await readForm(req, limitBytes))
}

function secondsOf(body: JsonObject, isTask: boolean): number {
  const flag = /--dur(?:ation)?\s+(\d+)/.exec(textOf(body.content))?.[1]
  const [value, missing] = isTask ? [body.duration ?? flag, 5] : [body.seconds, 4]
  const seconds = value === undefined ? missing : Number(value)
  if (Number.isInteger(seconds) && seconds >= 1 && seconds <= MAX_SECONDS) return seconds
  const param = isTask ? 'duration' : 'seconds'
  const message = `${param}: must be a whole number from 1 to ${MAX_SECONDS}.`
  throw new Fault('invalid_request', { message, param })
}
