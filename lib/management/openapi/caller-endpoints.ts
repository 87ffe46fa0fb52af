import { z } from 'zod'
import { type Answer, answersWith } from '../../core/json-api/index.ts'
import { type Operation, videos, videoTasks } from '../../core/operations/index.ts'
import { ACCOUNT_ENDPOINTS } from '../../endpoints/account/account.ts'
import { CALL_ENDPOINTS } from '../../endpoints/calls/calls.ts'
import { MODEL_ENDPOINTS } from '../../endpoints/models/models.ts'
import { TICKET_ENDPOINTS } from '../../endpoints/tickets/tickets.ts'
import { USAGE_ENDPOINTS } from '../../endpoints/usage/usage.ts'
import { taskList, videoList } from '../../endpoints/video/protocols/list-query.ts'
import { type Endpoint, mountedAt } from './describe-endpoint.ts'

const TAGS = { openai: 'OpenAI-style', anthropic: 'Anthropic-style', ark: 'Task-style video' } as const
const RELAYED: Answer = { status: 200, description: 'As the API of this protocol answers.' }
const STREAM = ['text/event-stream']

/** Returns the endpoint of an operation, which runs a model. */
export function modelEndpoint(operation: Operation): Endpoint {
  const { name, path, protocol, schema, acceptsForms = false, streamReader } = operation
  const streams = streamReader ? { media: ['application/json', ...STREAM] } : {}
  return {
    id: idOf(name),
    method: 'post',
    path,
    tag: TAGS[protocol],
    summary: `Runs a model: ${name}`,
    protocol,
    body: schema,
    form: acceptsForms,
    runsModel: true,
    answers: [{ ...RELAYED, ...streams }],
  }
}

/** `chat.completions`, `chat_completions` → `chatCompletions` */
function idOf(name: string): string {
  return name.replaceAll(/[^a-z\d]+([a-z\d])/gi, (_, letter: string) => letter.toUpperCase())
}

const openAi = { tag: 'OpenAI-style', answers: [RELAYED] } as const
const task = { tag: 'Task-style video', protocol: 'ark', answers: [RELAYED] } as const
const own = { tag: 'Calls and models' } as const
const health: Pick<Endpoint, 'tag' | 'auth'> = { tag: 'Health', auth: 'none' }

const healthAnswer = z.strictObject({
  status: z.string(),
  reason: z.string().optional().describe('Why it is not ready: `draining`, `store` or `ledger`.'),
})

const BYTES: Answer = { status: 200, description: 'The video.', media: ['video/mp4'] }

/** The endpoints of callers, beside those that run a model in one request. */
export const CALLER_ENDPOINTS: readonly Endpoint[] = [
  { id: 'getResponse', method: 'get', path: '/v1/responses/{id}', summary: 'A stored response', ...openAi },
  {
    id: 'deleteResponse',
    method: 'delete',
    path: '/v1/responses/{id}',
    summary: 'Deletes a stored response',
    ...openAi,
  },
  {
    id: 'listResponseInput',
    method: 'get',
    path: '/v1/responses/{id}/input_items',
    summary: 'The input of a stored response',
    ...openAi,
  },
  {
    id: 'cancelResponse',
    method: 'post',
    path: '/v1/responses/{id}/cancel',
    summary: 'A conflict: no response runs in the background',
    ...openAi,
  },
  {
    id: 'createVideo',
    method: 'post',
    path: videos.path,
    summary: 'Creates a video',
    ...openAi,
    body: videos.schema,
    form: true,
    runsModel: true,
  },
  {
    id: 'listVideos',
    method: 'get',
    path: videos.path,
    summary: "The account's videos",
    ...openAi,
    query: videoList,
  },
  { id: 'getVideo', method: 'get', path: `${videos.path}/{id}`, summary: 'One video', ...openAi },
  {
    id: 'deleteVideo',
    method: 'delete',
    path: `${videos.path}/{id}`,
    summary: 'Deletes a video, or cancels it',
    ...openAi,
  },
  {
    id: 'getVideoContent',
    method: 'get',
    path: `${videos.path}/{id}/content`,
    summary: 'The content of a video',
    ...openAi,
    answers: [BYTES],
  },
  {
    id: 'remixVideo',
    method: 'post',
    path: `${videos.path}/{id}/remix`,
    summary: 'Creates a video from another one',
    ...openAi,
    body: z.looseObject({ prompt: z.string() }),
    form: true,
    runsModel: true,
  },
  {
    id: 'createTask',
    method: 'post',
    path: videoTasks.path,
    summary: 'Creates a video task',
    ...task,
    body: videoTasks.schema,
    runsModel: true,
  },
  {
    id: 'listTasks',
    method: 'get',
    path: videoTasks.path,
    summary: "The account's video tasks",
    ...task,
    query: taskList,
  },
  { id: 'getTask', method: 'get', path: `${videoTasks.path}/{id}`, summary: 'One video task', ...task },
  {
    id: 'deleteTask',
    method: 'delete',
    path: `${videoTasks.path}/{id}`,
    summary: 'Deletes a video task, or cancels it',
    ...task,
  },
  ...mountedAt('/v1', own, MODEL_ENDPOINTS),
  ...mountedAt('/v1', own, ACCOUNT_ENDPOINTS),
  ...mountedAt('/v1', own, CALL_ENDPOINTS),
  ...mountedAt('/v1', own, USAGE_ENDPOINTS),
  ...mountedAt('/v1', own, TICKET_ENDPOINTS),
  {
    id: 'getHealth',
    method: 'get',
    path: '/healthz',
    summary: 'Whether the process runs',
    ...health,
    answers: answersWith('Health', healthAnswer),
  },
  {
    id: 'getReadiness',
    method: 'get',
    path: '/readyz',
    summary: 'Whether the process is ready for requests',
    ...health,
    answers: [
      { status: 200, description: 'It is ready.', schema: ['Health', healthAnswer] },
      {
        status: 503,
        description: 'A store is away, or the process is draining.',
        schema: ['Health', healthAnswer],
      },
    ],
  },
  {
    id: 'getDocument',
    method: 'get',
    path: '/openapi.json',
    summary: 'This document',
    ...health,
    answers: [{ status: 200, description: 'OpenAPI 3.1' }],
  },
]

const METHODS = ['get', 'post', 'put', 'patch', 'delete'] as const

/** The part of a pass-through rule that the document describes. */
export interface DocumentedRule {
  readonly path: string
  readonly methods?: readonly string[] | undefined
}

/** Returns the endpoints of pass-through rules: the methods of each path, with `*rest` and `:name` as parameters. */
export function passThroughEndpoints(rules: readonly DocumentedRule[]): Endpoint[] {
  return rules.flatMap(({ path, methods }) => {
    const templated = path.replaceAll(/[:*](\w+)/g, '{$1}').replaceAll(/\{\/(\{\w+\})\}/g, '/$1')
    const served = METHODS.filter((method) => methods?.includes(method.toUpperCase()) ?? true)
    return served.map((method) => ({
      id: `${method}${templated.replaceAll(/\W+(\w?)/g, (_, letter: string) => letter.toUpperCase())}`,
      method,
      path: templated,
      tag: 'Passed on',
      summary: `Passed on unread: ${method.toUpperCase()} ${path}`,
      answers: [{ status: 200, description: 'As the upstream answers.', media: ['*/*'] }],
    }))
  })
}
