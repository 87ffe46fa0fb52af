import assert from 'node:assert/strict'
import type { LineKind, VideoGateway } from './video-gateway.ts'
import { TASKS } from './video-gateway.ts'

/** A task as a caller reads it, in any protocol. */
export interface SeenTask {
  readonly id: string
  readonly status: string
  readonly [member: string]: unknown
}

/** One inbound protocol, used as its callers do. */
export interface VideoProtocol {
  readonly kind: LineKind
  readonly words: Readonly<Record<'queued' | 'running' | 'succeeded' | 'failed' | 'cancelled', string>>
  readonly path: string
  /** The smallest body. */
  body(extra?: Record<string, unknown>): Record<string, unknown>
}

export const OPENAI_VIDEO: VideoProtocol = {
  kind: 'openai',
  path: '/v1/videos',
  words: {
    queued: 'queued',
    running: 'in_progress',
    succeeded: 'completed',
    failed: 'failed',
    cancelled: 'failed',
  },
  body: (extra) => ({ model: 'video', prompt: 'a cat', ...extra }),
}

export const ARK_VIDEO: VideoProtocol = {
  kind: 'ark',
  path: TASKS,
  words: {
    queued: 'queued',
    running: 'running',
    succeeded: 'succeeded',
    failed: 'failed',
    cancelled: 'cancelled',
  },
  body: (extra) => ({ model: 'video', content: [{ type: 'text', text: 'a cat' }], ...extra }),
}

export const VIDEO_PROTOCOLS: readonly VideoProtocol[] = [OPENAI_VIDEO, ARK_VIDEO]

/** Every caller's protocol with every kind of line. */
export const PAIRINGS = VIDEO_PROTOCOLS.flatMap((caller) => VIDEO_PROTOCOLS.map((line) => ({ caller, line })))

/** Creates a task; fails unless that succeeds. */
export async function createTask(
  gateway: VideoGateway,
  { path, body }: VideoProtocol,
  extra: Record<string, unknown> = {},
): Promise<string> {
  const response = await gateway.send('POST', path, body(extra))
  const answer = await response.json()
  assert.equal(response.status, 200, JSON.stringify(answer))
  return (answer as SeenTask).id
}

/** Reads a task; fails unless it is there. */
export async function readTask(
  gateway: VideoGateway,
  { path }: VideoProtocol,
  id: string,
): Promise<SeenTask> {
  const response = await gateway.send('GET', `${path}/${id}`)
  const answer = await response.json()
  assert.equal(response.status, 200, JSON.stringify(answer))
  return answer as SeenTask
}

/** The code of an error, and that its envelope is whole. */
export async function errorOf(
  response: Response,
): Promise<{ code: string; param: unknown; message: string }> {
  const { error, request_id: id } = (await response.json()) as {
    error: { code: string; param: unknown; message: string }
    request_id: string
  }
  assert.equal(id, response.headers.get('x-request-id'))
  return error
}

/** Asserts what a caller sees of a task that it cancelled while it was queued: OpenAI-style, DELETE removes the video. */
export async function assertTakenBack(
  gateway: VideoGateway,
  caller: VideoProtocol,
  id: string,
): Promise<void> {
  if (caller.kind === 'ark')
    return assert.equal((await readTask(gateway, caller, id)).status, caller.words.cancelled)
  const response = await gateway.send('GET', `${caller.path}/${id}`)
  assert.equal(response.status, 404)
  assert.equal((await errorOf(response)).code, 'not_found')
  const list = await (await gateway.send('GET', caller.path)).text()
  assert.ok(!list.includes(id), 'a deleted video is not listed')
}
