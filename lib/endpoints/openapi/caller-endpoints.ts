import { z } from 'zod'
import { type Operation, videos, videoTasks } from '../../core/operations/index.ts'
import { callQuerySchema } from '../calls/call-query.ts'
import { newTicketSchema } from '../tickets/ticket-schemas.ts'
import { usageQuerySchema } from '../usage/usage-query.ts'
import { taskList, videoList } from '../video/protocols/list-query.ts'
import * as schemas from './answer-schemas.ts'
import { call } from './call-schema.ts'
import { type Answer, answersWith, type Endpoint } from './endpoint.ts'
import { modelCatalogEndpoints } from './model-catalog-endpoints.ts'
import { USAGE_ANSWERS } from './usage-schema.ts'

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
    idempotencyKey: true,
    answers: [{ ...RELAYED, ...streams }],
  }
}

/** `chat.completions`, `chat_completions` → `chatCompletions` */
function idOf(name: string): string {
  return name.replaceAll(/[^a-z\d]+([a-z\d])/gi, (_, letter: string) => letter.toUpperCase())
}

const responses = { tag: 'OpenAI-style', answers: [RELAYED] } as const
const video = { tag: 'OpenAI-style', answers: [RELAYED] } as const
const task = { tag: 'Task-style video', protocol: 'ark', answers: [RELAYED] } as const
const own = { tag: 'Calls and models' } as const
const health: Pick<Endpoint, 'tag' | 'auth'> = { tag: 'Health', auth: 'none' }

const BYTES: Answer = { status: 200, description: 'The video.', media: ['video/mp4'] }

/** The endpoints of callers, beside those that run a model in one request. */
export const CALLER_ENDPOINTS: readonly Endpoint[] = [
  {
    id: 'getResponse',
    method: 'get',
    path: '/v1/responses/{id}',
    summary: 'A stored response',
    ...responses,
  },
  {
    id: 'deleteResponse',
    method: 'delete',
    path: '/v1/responses/{id}',
    summary: 'Deletes a stored response',
    ...responses,
  },
  {
    id: 'listResponseInput',
    method: 'get',
    path: '/v1/responses/{id}/input_items',
    summary: 'The input of a stored response',
    ...responses,
  },
  {
    id: 'cancelResponse',
    method: 'post',
    path: '/v1/responses/{id}/cancel',
    summary: 'A conflict: no response runs in the background',
    ...responses,
  },
  {
    id: 'createVideo',
    method: 'post',
    path: videos.path,
    summary: 'Creates a video',
    ...video,
    body: videos.schema,
    form: true,
    idempotencyKey: true,
  },
  {
    id: 'listVideos',
    method: 'get',
    path: videos.path,
    summary: "The account's videos",
    ...video,
    query: videoList,
  },
  { id: 'getVideo', method: 'get', path: `${videos.path}/{id}`, summary: 'One video', ...video },
  {
    id: 'deleteVideo',
    method: 'delete',
    path: `${videos.path}/{id}`,
    summary: 'Deletes a video, or cancels it',
    ...video,
  },
  {
    id: 'getVideoContent',
    method: 'get',
    path: `${videos.path}/{id}/content`,
    summary: 'The content of a video',
    ...video,
    answers: [BYTES],
  },
  {
    id: 'remixVideo',
    method: 'post',
    path: `${videos.path}/{id}/remix`,
    summary: 'Creates a video from another one',
    ...video,
    body: z.looseObject({ prompt: z.string() }),
    form: true,
    idempotencyKey: true,
  },
  {
    id: 'createTask',
    method: 'post',
    path: videoTasks.path,
    summary: 'Creates a video task',
    ...task,
    body: videoTasks.schema,
    idempotencyKey: true,
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
  ...modelCatalogEndpoints('/v1/models', ['listModels', 'getModel', 'getRouting'], own),
  {
    id: 'getOwnAccount',
    method: 'get',
    path: '/v1/account',
    summary: 'Balance and limits of the account of this key',
    ...own,
    answers: answersWith('OwnAccount', schemas.ownAccount),
  },
  {
    id: 'listCalls',
    method: 'get',
    path: '/v1/calls',
    summary: "The account's calls, newest first; filters by tags are `tag:<name>`",
    ...own,
    query: callQuerySchema,
    answers: answersWith('CallList', schemas.listOf(call)),
  },
  {
    id: 'getCall',
    method: 'get',
    path: '/v1/calls/{request_id}',
    summary: 'One call',
    ...own,
    answers: answersWith('Call', call),
  },
  {
    id: 'getOwnUsage',
    method: 'get',
    path: '/v1/usage',
    summary: "What the account's calls have come to; filters by tags are `tag:<name>`",
    ...own,
    query: usageQuerySchema,
    answers: USAGE_ANSWERS,
  },
  {
    id: 'createTicket',
    method: 'post',
    path: '/v1/tickets',
    summary: 'Creates a ticket about a call',
    ...own,
    body: newTicketSchema,
    answers: answersWith('Ticket', schemas.ticket, 201),
  },
  {
    id: 'getTicket',
    method: 'get',
    path: '/v1/tickets/{id}',
    summary: 'One ticket',
    ...own,
    answers: answersWith('Ticket', schemas.ticket),
  },
  {
    id: 'getHealth',
    method: 'get',
    path: '/healthz',
    summary: 'Whether the process runs',
    ...health,
    answers: answersWith('Health', schemas.health),
  },
  {
    id: 'getReadiness',
    method: 'get',
    path: '/readyz',
    summary: 'Whether the process is ready for requests',
    ...health,
    answers: [
      { status: 200, description: 'It is ready.', schema: ['Health', schemas.health] },
      {
        status: 503,
        description: 'A store is away, or the process is draining.',
        schema: ['Health', schemas.health],
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
