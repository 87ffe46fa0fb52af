/** The provider whose error bodies and statuses are used. */
export type Provider = 'openai' | 'anthropic'

/** Why the server refuses a request. */
export type FaultKind =
  | 'missing_key'
  | 'invalid_key'
  | 'invalid_request'
  | 'too_large'
  | 'unknown_model'
  | 'unknown_path'
  | 'unknown_previous'
  | 'context_too_long'
  | 'rate_limited'
  | 'overloaded'
  | 'server_error'

export interface FaultDetail {
  readonly message?: string
  /** The invalid field; only OpenAI-style errors have it. */
  readonly param?: string
  readonly model?: string
  readonly inputTokens?: number
}

/** Thrown to refuse a request; `faultResponse` returns its response. */
export class Fault extends Error {
  readonly kind: FaultKind
  readonly detail: FaultDetail

  constructor(kind: FaultKind, detail: FaultDetail = {}) {
    super(detail.message ?? kind)
    this.kind = kind
    this.detail = detail
  }
}

/** The response to a refused request. */
export interface FaultResponse {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: object
}

interface Row {
  readonly openai: { readonly status: number; readonly type: string; readonly code: string | null }
  readonly anthropic: { readonly status: number; readonly type: string }
  readonly message: (detail: FaultDetail, provider: Provider) => string
}

const RETRY_AFTER_SECONDS = 3
/** The context window of `demo-context`: one token, so that each prompt is too long. */
const MIN_WINDOW = 1

const ROWS: Readonly<Record<FaultKind, Row>> = {
  missing_key: {
    openai: { status: 401, type: 'invalid_request_error', code: null },
    anthropic: { status: 401, type: 'authentication_error' },
    message: () => 'The demo model server needs an API key: send Authorization: Bearer <key> or x-api-key.',
  },
  invalid_key: {
    openai: { status: 401, type: 'invalid_request_error', code: 'invalid_api_key' },
    anthropic: { status: 401, type: 'authentication_error' },
    message: () => 'The demo model server does not know this API key.',
  },
  invalid_request: {
    openai: { status: 400, type: 'invalid_request_error', code: null },
    anthropic: { status: 400, type: 'invalid_request_error' },
    message: ({ message }) => message ?? 'The request is invalid.',
  },
  too_large: {
    openai: { status: 413, type: 'invalid_request_error', code: null },
    anthropic: { status: 413, type: 'request_too_large' },
    message: ({ message }) => message ?? 'The request is too large.',
  },
  unknown_model: {
    openai: { status: 404, type: 'invalid_request_error', code: 'model_not_found' },
    anthropic: { status: 404, type: 'not_found_error' },
    message: ({ model }) => `There is no demo model named ${model}; GET /v1/models lists them.`,
  },
  unknown_path: {
    openai: { status: 404, type: 'invalid_request_error', code: null },
    anthropic: { status: 404, type: 'not_found_error' },
    message: ({ message }) => message ?? 'There is nothing here.',
  },
  unknown_previous: {
    openai: { status: 400, type: 'invalid_request_error', code: 'previous_response_not_found' },
    anthropic: { status: 400, type: 'invalid_request_error' },
    message: ({ message }) => message ?? 'The previous response is not there.',
  },
  context_too_long: {
    openai: { status: 400, type: 'invalid_request_error', code: 'context_length_exceeded' },
    anthropic: { status: 400, type: 'invalid_request_error' },
    // The Anthropic-style envelope has no code: clients recognise this error by the beginning of its message.
    message: ({ inputTokens = 0 }, provider) =>
      provider === 'anthropic'
        ? `prompt is too long: ${inputTokens} tokens > ${MIN_WINDOW} maximum`
        : `This demo model's maximum context length is ${MIN_WINDOW} token, and your messages have ${inputTokens}.`,
  },
  rate_limited: {
    openai: { status: 429, type: 'requests', code: 'rate_limit_exceeded' },
    anthropic: { status: 429, type: 'rate_limit_error' },
    message: () => `The demo rate limit is reached. Try again in ${RETRY_AFTER_SECONDS}s.`,
  },
  overloaded: {
    openai: { status: 503, type: 'server_error', code: null },
    anthropic: { status: 529, type: 'overloaded_error' },
    message: () => 'The demo model plays overloaded.',
  },
  server_error: {
    openai: { status: 500, type: 'server_error', code: null },
    anthropic: { status: 500, type: 'api_error' },
    message: () => 'The demo model plays broken.',
  },
}

export function faultResponse(fault: Fault, provider: Provider, requestId: string): FaultResponse {
  const row = ROWS[fault.kind]
  const message = row.message(fault.detail, provider)
  const headers = fault.kind === 'rate_limited' ? rateLimitHeaders(provider) : {}
  if (provider === 'anthropic') {
    const { status, type } = row.anthropic
    return { status, headers, body: { type: 'error', error: { type, message }, request_id: requestId } }
  }
  const { status, type, code } = row.openai
  const param = fault.detail.param ?? (fault.kind === 'context_too_long' ? 'messages' : null)
  return { status, headers, body: { error: { message, type, param, code } } }
}

function rateLimitHeaders(provider: Provider): Record<string, string> {
  const retryAfter = { 'retry-after': String(RETRY_AFTER_SECONDS) }
  if (provider === 'openai') {
    return {
      ...retryAfter,
      'x-ratelimit-limit-requests': '60',
      'x-ratelimit-remaining-requests': '0',
      'x-ratelimit-reset-requests': `${RETRY_AFTER_SECONDS}s`,
    }
  }
  return {
    ...retryAfter,
    'anthropic-ratelimit-requests-limit': '60',
    'anthropic-ratelimit-requests-remaining': '0',
    'anthropic-ratelimit-requests-reset': new Date(Date.now() + RETRY_AFTER_SECONDS * 1000).toISOString(),
  }
}
