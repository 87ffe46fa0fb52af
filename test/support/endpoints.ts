import type { ModelKind } from '../../lib/core/catalog/index.ts'
import type { ProtocolName } from '../../lib/core/protocols/index.ts'
import { chatBody, messageBody } from './gateway.ts'
import { messageItem, responseBody } from './responses-upstream.ts'
import { answerJson, chatAnswer, messageAnswer, type UpstreamScript } from './scripted-upstream.ts'

/** A request of an endpoint, as `fetch` takes it. */
export interface EndpointRequest {
  readonly method: string
  readonly body: string
  readonly headers: Readonly<Record<string, string>>
}

/** One endpoint that runs a model, for tests that hold of each. A further one is a row in {@link ENDPOINTS}. */
export interface Endpoint {
  readonly path: string
  readonly kind: ModelKind
  /** Whose envelope its errors have, and which lines can serve it. */
  readonly protocol: ProtocolName
  /** Further protocols that its lines may speak, without a translation. */
  readonly alsoOn?: readonly ProtocolName[]
  /** Never charged. */
  readonly free?: true
  /** Passed on unread, by a rule for its path: it has no model and no tokens. */
  readonly unread?: true
  /** The smallest request for a model. */
  request(model: string): EndpointRequest
  /** How an upstream answers it. */
  readonly answer: UpstreamScript
  /** The same without any output; absent where there is no such answer. */
  readonly answerEmpty?: UpstreamScript
}

const json = (body: (model: string) => object) => (model: string) => ({
  method: 'POST',
  body: JSON.stringify(body(model)),
  headers: { 'content-type': 'application/json' },
})

const says =
  (body: unknown): UpstreamScript =>
  (res) =>
    answerJson(res, 200, body)

/** A text completion as the real API answers it. */
export const completionAnswer = (text: string, extra: Record<string, unknown> = {}) => ({
  id: 'cmpl-1',
  object: 'text_completion',
  created: 1,
  model: 'upstream-model',
  choices: [{ text, index: 0, logprobs: null, finish_reason: 'stop' }],
  usage: { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 },
  ...extra,
})

/** Embeddings as the real API answers them, one of each vector. */
export const embeddingAnswer = (
  vectors: readonly (readonly number[] | string)[],
  extra: Record<string, unknown> = {},
) => ({
  object: 'list',
  data: vectors.map((embedding, index) => ({ object: 'embedding', index, embedding })),
  model: 'upstream-model',
  usage: { prompt_tokens: 7, total_tokens: 7 },
  ...extra,
})

/** Images as the real API answers them. */
export const imageAnswer = (images: readonly object[], extra: Record<string, unknown> = {}) => ({
  created: 1,
  data: images,
  ...extra,
})

/** Reranked documents as the first of the hosted rerankers answers them. */
export const rerankAnswer = (scores: readonly number[], extra: Record<string, unknown> = {}) => ({
  id: 'rerank-1',
  results: scores.map((relevance_score, index) => ({ index, relevance_score })),
  meta: { api_version: { version: '2' }, billed_units: { search_units: 1 } },
  ...extra,
})

export const ENDPOINTS: readonly Endpoint[] = [
  {
    path: '/v1/chat/completions',
    kind: 'chat',
    protocol: 'openai',
    request: json((model) => chatBody({ model })),
    answer: (res) => chatAnswer(res),
    answerEmpty: (res) => chatAnswer(res, ''),
  },
  {
    path: '/v1/completions',
    kind: 'chat',
    protocol: 'openai',
    request: json((model) => ({ model, prompt: 'Once upon a time' })),
    answer: says(completionAnswer(' there was')),
    answerEmpty: says(completionAnswer('')),
  },
  {
    path: '/v1/responses',
    kind: 'chat',
    protocol: 'openai',
    request: json((model) => ({ model, input: 'hi' })),
    answer: says(responseBody([messageItem('Hello')])),
    answerEmpty: says(responseBody([])),
  },
  {
    path: '/v1/responses/compact',
    kind: 'chat',
    protocol: 'openai',
    request: json((model) => ({ model, input: 'hi' })),
    answer: says(responseBody([{ id: 'cmp_1', type: 'compaction', encrypted_content: 'c2VhbGVk' }])),
    answerEmpty: says(responseBody([])),
  },
  {
    path: '/v1/responses/input_tokens',
    kind: 'chat',
    protocol: 'openai',
    free: true,
    request: json((model) => ({ model, input: 'hi' })),
    answer: says({ object: 'response.input_tokens', input_tokens: 8 }),
  },
  {
    path: '/v1/embeddings',
    kind: 'embedding',
    protocol: 'openai',
    request: json((model) => ({ model, input: 'some words' })),
    answer: says(embeddingAnswer([[0.25, -1.5, 3]])),
    answerEmpty: says(embeddingAnswer([])),
  },
  {
    path: '/v1/images/generations',
    kind: 'image',
    protocol: 'openai',
    request: json((model) => ({ model, prompt: 'a cat' })),
    answer: says(imageAnswer([{ b64_json: 'iVBORw0KGgo=' }])),
    answerEmpty: says(imageAnswer([])),
  },
  {
    path: '/v1/images/edits',
    kind: 'image',
    protocol: 'openai',
    request: json((model) => ({ model, prompt: 'a cat', images: [{ image_url: 'https://a.test/cat.png' }] })),
    answer: says(imageAnswer([{ b64_json: 'iVBORw0KGgo=' }])),
    answerEmpty: says(imageAnswer([])),
  },
  {
    path: '/v1/rerank',
    kind: 'rerank',
    protocol: 'openai',
    request: json((model) => ({ model, query: 'a question', documents: ['one', 'two'] })),
    answer: says(rerankAnswer([0.9, 0.1])),
    answerEmpty: says(rerankAnswer([])),
  },
  {
    path: '/v1/messages',
    kind: 'chat',
    protocol: 'anthropic',
    request: json((model) => messageBody({ model })),
    answer: (res) => messageAnswer(res),
    answerEmpty: (res) => messageAnswer(res, ''),
  },
  {
    path: '/v1/messages/count_tokens',
    kind: 'chat',
    protocol: 'anthropic',
    free: true,
    request: json((model) => ({ model, messages: [{ role: 'user', content: 'hi' }] })),
    answer: says({ input_tokens: 8 }),
  },
]

/** The endpoints that are no operation of `route`: the work that they begin ends later. */
export const VIDEO_ENDPOINTS: readonly Endpoint[] = [
  {
    path: '/v1/videos',
    kind: 'video',
    protocol: 'openai',
    alsoOn: ['ark'],
    request: json((model) => ({ model, prompt: 'waves' })),
    // Over at once, so that it is charged by then.
    answer: says({ id: 'video_up', object: 'video', status: 'completed', seconds: '4', size: '720x1280' }),
  },
  {
    path: '/api/v3/contents/generations/tasks',
    kind: 'video',
    protocol: 'ark',
    alsoOn: ['openai'],
    request: json((model) => ({ model, content: [{ type: 'text', text: 'waves' }] })),
    answer: says({ id: 'cgt-up', status: 'succeeded' }),
  },
]

export const PASS_THROUGH_ENDPOINTS: readonly Endpoint[] = [
  {
    path: '/v1/files',
    kind: 'chat',
    protocol: 'openai',
    alsoOn: ['anthropic', 'ark'],
    unread: true,
    request: json(() => ({ purpose: 'user_data' })),
    answer: says({ id: 'file-1', object: 'file' }),
  },
]
