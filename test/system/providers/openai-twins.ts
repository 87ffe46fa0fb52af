import { type ChatQuirks, chatCompletion, embeddingList } from './answers.ts'
import type { Twin, TwinAnswer, TwinRequest } from './twin-server.ts'

/** How a provider with OpenAI's API differs from it. */
export interface OpenAiKind {
  /** The path of each endpoint, and what it answers. */
  readonly endpoints: Readonly<Record<string, (request: TwinRequest) => TwinAnswer>>
  /** The names of its models. */
  readonly models: readonly string[]
  /** Whether a request has the key, in the form that the provider wants. */
  isKeyed?(request: TwinRequest): boolean
  /** The members that its endpoints know; all if absent. */
  readonly known?: readonly string[]
  /** The body of an error in its own shape. */
  error(status: number, message: string): unknown
  /** The status for a member that it does not know. */
  readonly unknownStatus?: number
}

/** OpenAI's own shape of errors. */
export const openAiError = (status: number, text: string): object => ({
  error: {
    message: text,
    type: status === 401 ? 'authentication_error' : 'invalid_request_error',
    param: null,
    code: null,
  },
})

/** The key that each twin takes. */
export const TWIN_KEY = 'twin-key-0123'
export const bearer = ({ headers }: TwinRequest): boolean => headers.authorization === `Bearer ${TWIN_KEY}`

/** Returns a twin with OpenAI's API. */
export function openAiTwin({
  endpoints,
  models,
  isKeyed = bearer,
  known,
  error,
  unknownStatus = 400,
}: OpenAiKind): Twin {
  return (request) => {
    const { method, path, json } = request
    const refuse = (status: number, text: string): TwinAnswer => ({ status, body: error(status, text) })
    const answer = Object.hasOwn(endpoints, path) && method === 'POST' ? endpoints[path] : undefined
    if (!answer) return refuse(404, `Unknown request URL: ${method} ${path}`)
    if (!isKeyed(request)) return refuse(401, 'Incorrect API key provided')
    const strange = known && Object.keys(json).find((name) => !known.includes(name))
    if (strange !== undefined) return refuse(unknownStatus, `property '${strange}' is unsupported`)
    if (!models.includes(String(json.model))) return refuse(404, `The model ${json.model} does not exist`)
    return answer(request)
  }
}

/** The endpoints for chat and embeddings below a path. */
export function chatAndEmbeddings(base: string, quirks: ChatQuirks = {}): OpenAiKind['endpoints'] {
  return {
    [`${base}/chat/completions`]: (request) => chatCompletion(request, quirks),
    [`${base}/embeddings`]: (request) => embeddingList(request),
  }
}
