import { z } from 'zod'
import { type Operation, videos, videoTasks } from '../../core/operations/index.ts'
import { callQuerySchema } from '../calls/call-query.ts'
import { newTicketSchema } from '../tickets/ticket-schemas.ts'
import { usageQuerySchema } from '../usage/usage-query.ts'
import { taskList, videoList } from '../video/protocols/list-query.ts'
import * as schemas from './answer-schemas.ts'
import { call } from './call-schema.ts'
import { type Answer, answersWith, type Endpoint, endpoint } from './endpoint.ts'
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

const BYTES: Answer = { status: 200, description: 'The video.', media: ['video/mp4'] }

/** The endpoints of callers, beside those that run a model in one request. */
export const CALLER_ENDPOINTS: readonly Endpoint[] = [
  endpoint('get', '/v1/responses/{id}', 'getResponse', { summary: 'A stored response', ...openAi }),
  endpoint('delete', '/v1/responses/{id}', 'deleteResponse', {
    summary: 'Deletes a stored response',
    ...openAi,
  }),
  endpoint('get', '/v1/responses/{id}/input_items', 'listResponseInput', {
    summary: 'The input of a stored response',
    ...openAi,
  }),
  endpoint('post', '/v1/responses/{id}/cancel', 'cancelResponse', {
    summary: 'A conflict: no response runs in the background',
    ...openAi,
  }),
  endpoint('post', videos.path, 'createVideo', {
    summary: 'Creates a video',
    ...openAi,
    body: videos.schema,
    form: true,
    runsModel: true,
  }),
  endpoint('get', videos.path, 'listVideos', {
    summary: "The account's videos",
    ...openAi,
    query: videoList,
  }),
  endpoint('get', `${videos.path}/{id}`, 'getVideo', { summary: 'One video', ...openAi }),
  endpoint('delete', `${videos.path}/{id}`, 'deleteVideo', {
    summary: 'Deletes a video, or cancels it',
    ...openAi,
  }),
  endpoint('get', `${videos.path}/{id}/content`, 'getVideoContent', {
    summary: 'The content of a video',
    ...openAi,
    answers: [BYTES],
  }),
  endpoint('post', `${videos.path}/{id}/remix`, 'remixVideo', {
    summary: 'Creates a video from another one',
    ...openAi,
    body: z.looseObject({ prompt: z.string() }),
    form: true,
    runsModel: true,
  }),
  endpoint('post', videoTasks.path, 'createTask', {
    summary: 'Creates a video task',
    ...task,
    body: videoTasks.schema,
    runsModel: true,
  }),
  endpoint('get', videoTasks.path, 'listTasks', {
    summary: "The account's video tasks",
    ...task,
    query: taskList,
  }),
  endpoint('get', `${videoTasks.path}/{id}`, 'getTask', { summary: 'One video task', ...task }),
  endpoint('delete', `${videoTasks.path}/{id}`, 'deleteTask', {
    summary: 'Deletes a video task, or cancels it',
    ...task,
  }),
  ...modelCatalogEndpoints('/v1/models', ['listModels', 'getModel', 'getRouting'], own),
  endpoint('get', '/v1/account', 'getOwnAccount', {
    summary: 'Balance and limits of the account of this key',
    ...own,
    answers: answersWith('OwnAccount', schemas.ownAccount),
  }),
  endpoint('get', '/v1/calls', 'listCalls', {
    summary: "The account's calls, newest first; filters by tags are `tag:<name>`",
    ...own,
    query: callQuerySchema,
    answers: answersWith('CallList', schemas.listOf(call)),
  }),
  endpoint('get', '/v1/calls/{request_id}', 'getCall', {
    summary: 'One call',
    ...own,
    answers: answersWith('Call', call),
  }),
  endpoint('get', '/v1/usage', 'getOwnUsage', {
    summary: "What the account's calls have come to; filters by tags are `tag:<name>`",
    ...own,
    query: usageQuerySchema,
    answers: USAGE_ANSWERS,
  }),
  endpoint('post', '/v1/tickets', 'createTicket', {
    summary: 'Creates a ticket about a call',
    ...own,
    body: newTicketSchema,
    answers: answersWith('Ticket', schemas.ticket, 201),
  }),
  endpoint('get', '/v1/tickets/{id}', 'getTicket', {
    summary: 'One ticket',
    ...own,
    answers: answersWith('Ticket', schemas.ticket),
  }),
  endpoint('get', '/healthz', 'getHealth', {
    summary: 'Whether the process runs',
    ...health,
    answers: answersWith('Health', schemas.health),
  }),
  endpoint('get', '/readyz', 'getReadiness', {
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
  }),
  endpoint('get', '/openapi.json', 'getDocument', {
    summary: 'This document',
    ...health,
    answers: [{ status: 200, description: 'OpenAPI 3.1' }],
  }),
]
