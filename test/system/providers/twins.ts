import { chatCompletion, embeddingList, message } from './answers.ts'
import { bedrockTwin } from './bedrock-twin.ts'
import { bearer, chatAndEmbeddings, openAiError, openAiTwin, TWIN_KEY } from './openai-twins.ts'
import { entraTwin, googleTwin } from './token-twins.ts'
import type { Twin, TwinRequest } from './twin-server.ts'

/** The members that Mistral's chat knows; it refuses all others. */
const MISTRAL =
  'model messages temperature top_p max_tokens stream stop random_seed response_format tools tool_choice presence_penalty frequency_penalty n prediction parallel_tool_calls prompt_mode safe_prompt input encoding_format output_dimension'
const GROQ =
  'model messages temperature top_p max_tokens max_completion_tokens stream stream_options stop seed response_format tools tool_choice parallel_tool_calls user n presence_penalty frequency_penalty service_tier reasoning_effort reasoning_format'
const GEMINI =
  'model messages temperature top_p max_tokens max_completion_tokens stream stream_options stop n response_format tools tool_choice reasoning_effort extra_body input dimensions encoding_format'
const names = (list: string): string[] => list.split(' ')

const azureKey = ({ headers }: TwinRequest): boolean =>
  headers['api-key'] === TWIN_KEY || headers.authorization === 'Bearer entra-token'
const azureError = (status: number, text: string): object => ({
  error: { code: String(status), message: text },
})
const AZURE_MODELS = ['my-gpt-5-mini', 'my-embeddings']
/** Azure's streams begin with a chunk about filters, which has no choices. */
const FILTERS = `data: ${JSON.stringify({ id: '', object: '', created: 0, model: '', choices: [], prompt_filter_results: [{ prompt_index: 0, content_filter_results: {} }] })}\n\n`
const azureV1 = openAiTwin({
  endpoints: chatAndEmbeddings('/openai/v1', { before: [FILTERS] }),
  models: AZURE_MODELS,
  isKeyed: azureKey,
  error: azureError,
})

const azureTwin: Twin = (request) => {
  const { path, query, headers } = request
  if (path.startsWith('/openai/v1/')) return azureV1(request)
  const [, deployment, endpoint] =
    /^\/openai\/deployments\/([^/]+)\/(chat\/completions|embeddings)$/.exec(path) ?? []
  // Without a version Azure knows no such path.
  if (deployment === undefined || !/^\d{4}-\d\d-\d\d(-preview)?$/.test(query.get('api-version') ?? ''))
    return { status: 404, body: azureError(404, 'Resource not found') }
  if (headers['api-key'] !== TWIN_KEY)
    return {
      status: 401,
      body: azureError(401, 'Access denied due to invalid subscription key or wrong API endpoint.'),
    }
  if (!AZURE_MODELS.includes(deployment))
    return {
      status: 404,
      body: {
        error: {
          code: 'DeploymentNotFound',
          message: 'The API deployment for this resource does not exist.',
        },
      },
    }
  return endpoint === 'embeddings' ? embeddingList(request) : chatCompletion(request, { before: [FILTERS] })
}

const anthropicTwin: Twin = ({ path, headers, json }) => {
  const refuse = (status: number, type: string, text: string) => ({
    status,
    body: { type: 'error', error: { type, message: text } },
  })
  if (path !== '/v1/messages') return refuse(404, 'not_found_error', 'Not found')
  if (headers['x-api-key'] !== TWIN_KEY) return refuse(401, 'authentication_error', 'invalid x-api-key')
  if (headers['anthropic-version'] === undefined)
    return refuse(400, 'invalid_request_error', 'anthropic-version: header is required')
  if (json.model !== 'claude-sonnet-4-5') return refuse(404, 'not_found_error', `model: ${json.model}`)
  return message(json.model, json.stream === true)
}

const vertexTwin: Twin = (request) => {
  const { path, headers, json } = request
  const refuse = (status: number, code: string, text: string) => ({
    status,
    body: [{ error: { code: status, message: text, status: code } }],
  })
  if (headers.authorization !== 'Bearer google-token')
    return refuse(401, 'UNAUTHENTICATED', 'Request had invalid authentication credentials.')
  const base = '/v1/projects/YOUR-PROJECT/locations/us-east5'
  if (path === `${base}/endpoints/openapi/chat/completions`)
    return json.model === 'google/gemini-2.5-flash'
      ? chatCompletion(request, { usageUnasked: true })
      : refuse(404, 'NOT_FOUND', 'Publisher Model was not found')
  const [, how] =
    new RegExp(`^${base}/publishers/anthropic/models/claude-sonnet-4-5%40?@?20250929:(\\w+)$`).exec(path) ??
    []
  if (how === undefined) return refuse(404, 'NOT_FOUND', 'Publisher Model was not found')
  if (json.model !== undefined)
    return refuse(400, 'INVALID_ARGUMENT', 'model: Extra inputs are not permitted')
  if (json.anthropic_version !== 'vertex-2023-10-16')
    return refuse(400, 'INVALID_ARGUMENT', 'anthropic_version: Field required')
  if ((json.stream === true) !== (how === 'streamRawPredict'))
    return refuse(400, 'INVALID_ARGUMENT', 'stream does not fit')
  return message('claude-sonnet-4-5', json.stream === true)
}

const geminiTwin = openAiTwin({
  endpoints: chatAndEmbeddings('/v1beta/openai', { usageUnasked: true }),
  models: ['gemini-2.5-flash', 'gemini-embedding-001'],
  known: names(GEMINI),
  error: (status, text) => [{ error: { code: status, message: text, status: 'INVALID_ARGUMENT' } }],
})

const cohereError = (_status: number, text: string): object => ({ id: 'twin', message: text })
const cohereChat = openAiTwin({
  endpoints: chatAndEmbeddings('/compatibility/v1'),
  models: ['command-a-03-2025'],
  error: cohereError,
})
const cohereRerank = openAiTwin({
  endpoints: {
    '/v2/rerank': () => ({
      body: {
        id: 'twin',
        results: [{ index: 1, relevance_score: 0.9 }],
        meta: { billed_units: { search_units: 1 } },
      },
    }),
  },
  models: ['rerank-v3.5'],
  known: names('model query documents top_n max_tokens_per_doc priority'),
  error: cohereError,
})

const voyageTwin = openAiTwin({
  endpoints: {
    '/v1/embeddings': (request) => embeddingList(request, { total_tokens: 7 }),
    '/v1/rerank': ({ json }) => ({
      body: {
        object: 'list',
        data: [{ index: 1, relevance_score: 0.9 }],
        model: json.model,
        usage: { total_tokens: 7 },
      },
    }),
  },
  models: ['voyage-3.5', 'rerank-2.5'],
  known: names(
    'model input input_type truncation output_dimension output_dtype encoding_format query documents top_k return_documents',
  ),
  error: (_status, text) => ({ detail: text }),
})

const plain = (base: string, models: string[], quirks = {}): Twin =>
  openAiTwin({ endpoints: chatAndEmbeddings(base, quirks), models, error: openAiError })

/** The twins by the hosts of the providers. */
export function twinsWith(googleKey: string): Readonly<Record<string, Twin>> {
  return {
    'api.openai.com': plain('/v1', ['gpt-5-mini', 'text-embedding-3-small']),
    'your-resource.openai.azure.com': azureTwin,
    'login.microsoftonline.com': entraTwin,
    'api.anthropic.com': anthropicTwin,
    'bedrock-runtime.us-east-1.amazonaws.com': bedrockTwin,
    'us-east5-aiplatform.googleapis.com': vertexTwin,
    'oauth2.googleapis.com': googleTwin(googleKey),
    'generativelanguage.googleapis.com': geminiTwin,
    'api.mistral.ai': openAiTwin({
      endpoints: chatAndEmbeddings('/v1', { usageUnasked: true }),
      models: ['mistral-small-latest', 'mistral-embed'],
      known: names(MISTRAL),
      unknownStatus: 422,
      error: (_status, text) => ({
        object: 'error',
        message: { detail: [{ type: 'extra_forbidden', msg: text }] },
        type: 'invalid_request_error',
      }),
    }),
    'api.groq.com': openAiTwin({
      endpoints: chatAndEmbeddings('/openai/v1', { extra: { x_groq: { id: 'req_twin' } } }),
      models: ['llama-3.3-70b-versatile'],
      known: names(GROQ),
      error: openAiError,
    }),
    'api.deepseek.com': plain('/v1', ['deepseek-chat'], { before: [': keep-alive\n\n'] }),
    'api.x.ai': plain('/v1', ['grok-4']),
    'api.cohere.ai': cohereChat,
    'api.cohere.com': cohereRerank,
    'api.voyageai.com': voyageTwin,
    'openrouter.ai': plain('/api/v1', ['meta-llama/llama-3.3-70b-instruct'], {
      before: [': OPENROUTER PROCESSING\n\n'],
      extra: { provider: 'Twin' },
    }),
    'api.together.xyz': plain('/v1', ['meta-llama/Llama-3.3-70B-Instruct-Turbo', 'BAAI/bge-base-en-v1.5']),
    'api.fireworks.ai': plain('/inference/v1', ['accounts/fireworks/models/llama-v3p3-70b-instruct'], {
      usageUnasked: true,
    }),
    // Local servers: Ollama asks for no key.
    localhost: (request) => {
      const isOllama = /^(?:llama|nomic)/.test(String(request.json.model))
      const models = isOllama ? ['llama3.2:3b', 'nomic-embed-text'] : ['Qwen/Qwen3-8B']
      return openAiTwin({
        endpoints: chatAndEmbeddings('/v1'),
        models,
        isKeyed: isOllama ? () => true : bearer,
        error: openAiError,
      })(request)
    },
  }
}
