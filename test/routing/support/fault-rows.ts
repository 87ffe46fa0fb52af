import type { ErrorCode } from '../../../lib/core/errors/index.ts'

/** The side at fault: the line, for all its models, the model on the line, or nobody. */
export type Fault = 'line' | 'model' | 'none'
/** Status, error, and what it comes to. */
export type FaultRow = readonly [
  what: string,
  status: number,
  error: unknown,
  code: ErrorCode,
  fault: Fault,
  next: boolean,
  headers?: Record<string, string>,
  restMs?: number,
]

const says = (message: string, more: object = {}) => ({ message, ...more })
const REQUEST = ['invalid_request', 'none', false] as const
const FILTERED = ['content_filtered', 'none', false] as const
const OURS = ['upstream_error', 'line', true] as const
const MODEL = ['upstream_error', 'model', true] as const
const ELSEWHERE = ['upstream_error', 'none', true] as const
const BUSY = ['upstream_overloaded', 'model', true] as const
const LIMITED = ['upstream_rate_limited', 'none', true] as const

/** The errors that a line can refuse a call with. */
export const TABLE: readonly FaultRow[] = [
  ['no words', 401, {}, ...OURS],
  ['no words', 402, {}, ...OURS],
  ['our balance', 402, says('Your credit balance is too low'), ...OURS],
  ['our key', 403, says('Incorrect API key'), ...OURS],
  ['our account', 403, says('Your account is not active'), ...OURS],
  ['our account and a policy', 403, says('Your account was disabled for policy violations'), ...OURS],
  ['permission, by its type', 403, { type: 'permission_error' }, ...OURS],
  ['permission, by its code', 403, { code: 'access_denied' }, ...OURS],
  ['flagged', 403, says('Your input was flagged'), ...FILTERED],
  ['moderation', 403, says('Your chosen model requires moderation'), ...FILTERED],
  ['policy', 403, says('Not allowed by our usage policies'), ...FILTERED],
  [
    'moderation, as Grok does',
    403,
    says(
      'Content violates usage guidelines. Team: t-1, API key ID: k-1, Failed check: SAFETY_CHECK_TYPE_BIO',
      {
        code: 'The caller does not have permission to execute the specified operation',
      },
    ),
    ...FILTERED,
  ],
  [
    'access, as Grok does',
    403,
    says('Access to the chat endpoint is denied', { code: 'permission-denied' }),
    ...OURS,
  ],
  ['policy, by its code', 403, { code: 'content_policy_violation' }, ...FILTERED],
  ['nothing of ours', 403, says('No.'), ...REQUEST],
  ['nothing', 404, {}, ...MODEL],
  ['the model', 404, says('The model `gpt-x` does not exist', { code: 'model_not_found' }), ...MODEL],
  ['the model, as Anthropic does', 404, { type: 'not_found_error', message: 'model: claude-x' }, ...MODEL],
  ['a file', 404, says('No such File object: file-abc'), ...REQUEST],
  ['a vector store', 404, says('Vector store vs_1 not found'), ...REQUEST],
  ['a thread', 404, { code: 'thread_not_found' }, ...REQUEST],
  ['a container', 404, says('Container cntr_1 not found'), ...REQUEST],
  ['an item', 404, says("Item with id 'rs_1' not found"), ...REQUEST],
  ['a param', 404, says('Not found', { param: 'messages[0].file_id' }), ...REQUEST],
  ['an unknown model', 400, { code: 'model_not_found' }, ...MODEL],
  ['an unknown model, in words', 400, says('The model `gpt-x` does not exist'), ...MODEL],
  ...[
    'Invocation of model ID x with on-demand throughput isn’t supported. Retry your request with the ID of an inference profile.',
    "The provided model doesn't support on-demand throughput.",
  ].map(
    (message): FaultRow => [
      `a model that has to be named otherwise: ${message}`,
      400,
      says(message),
      ...MODEL,
    ],
  ),
  [
    'a model for other endpoints, as Azure does',
    400,
    says(
      'The chatCompletion operation does not work with the specified model, x. Please choose different model.',
      {
        code: 'OperationNotSupported',
      },
    ),
    ...ELSEWHERE,
  ],
  ['a model that lacks a feature', 400, says('This model does not support image input'), ...REQUEST],
  ...[
    'Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing.',
    'You have reached your specified API usage limits. You will regain access on 2026-12-01.',
    'This organization has been disabled.',
    'API key not valid. Please pass a valid API key.',
    'API key expired. Please renew the API key.',
    'Incorrect API key provided: xx***yz.',
    'Billing hard limit has been reached',
    'Access denied, please make sure your account is in good standing.',
  ].map(
    (message): FaultRow => [
      `our account: ${message}`,
      400,
      says(message, { type: 'invalid_request_error' }),
      ...OURS,
    ],
  ),
  [
    'our place, as OpenAI does',
    403,
    says('Country, region, or territory not supported', {
      code: 'unsupported_country_region_territory',
      type: 'request_forbidden',
    }),
    ...OURS,
  ],
  ['our place, as Anthropic does', 403, says('Request not allowed', { type: 'forbidden' }), ...OURS],
  [
    'our place, as Gemini does',
    400,
    says('User location is not supported for the API use.', { code: 'FAILED_PRECONDITION' }),
    ...OURS,
  ],
  ['a request that is not allowed', 403, says('Request not allowed for minors'), ...REQUEST],
  ['our account, as Fireworks does', 412, says('Account a-1 is suspended, possibly by its limit'), ...OURS],
  ['anything', 412, says('No.'), ...REQUEST],
  ['a member that is named like our key', 400, says('api key: Extra inputs are not permitted'), ...REQUEST],
  ['what quotes our key', 400, says('Unknown member "API key not valid"'), ...REQUEST],
  ['a member', 400, says('Your organization is not verified', { param: 'stream' }), ...REQUEST],
  ['context', 400, { code: 'context_length_exceeded' }, 'context_too_long', 'none', false],
  ['context', 413, { code: 'context_length_exceeded' }, 'context_too_long', 'none', false],
  ['context, of Ark', 400, { code: 'OutofContextError' }, 'context_too_long', 'none', false],
  ...[
    'The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).',
    'Input Tokens Exceeded: Number of input tokens exceeds maximum length.',
    "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
    'Invalid request: Your request exceeded model token limit: 262144 (requested: 269030)',
    '<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 30720]',
    "Invalid 'input[0]': maximum input length is 8192 tokens.",
    'The decoder prompt (length 5000) is longer than the maximum model length of 4096.',
    'Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000',
    'Input validation error: `inputs` must have less than 512 tokens. Given: 534',
    'the request exceeds the available context size, try increasing it',
  ].map(
    (message): FaultRow => [`context: ${message}`, 400, says(message), 'context_too_long', 'none', false],
  ),
  ['a context size', 400, says("Invalid value for 'search_context_size'"), ...REQUEST],
  ['the length of the answer', 400, says('Range of max_tokens should be [1, 8192]'), ...REQUEST],
  ['size', 413, {}, 'request_too_large', 'none', false],
  ['policy', 400, says('Output blocked by content filtering policy'), ...FILTERED],
  ...[
    'SensitiveContentDetected.Violence',
    'InputTextSensitiveContentDetected',
    'OutputImageSensitiveContentDetected.PolicyViolation',
    'OutputTextRiskDetection',
  ].map(
    (code): FaultRow => [
      `moderation, as Ark does by ${code}`,
      400,
      says('The request failed because it may contain sensitive information.', { code, type: 'BadRequest' }),
      ...FILTERED,
    ],
  ),
  [
    'moderation, as Qwen does',
    400,
    says('Input text data may contain inappropriate content.', { code: 'data_inspection_failed' }),
    ...FILTERED,
  ],
  [
    'moderation, as Kimi does',
    400,
    says('It was considered high risk', { code: 400, type: 'content_filter', param: 'prompt' }),
    ...FILTERED,
  ],
  ['moderation, as DeepSeek does', 400, says('Content Exists Risk'), ...FILTERED],
  ...[
    "Unknown parameter: 'moderation'.",
    "Unsupported parameter: 'content_filter' is not supported with this model.",
    'Unrecognized request argument supplied: moderation',
    "Unknown parameter: 'context_length'.",
    "Missing required parameter: 'content_filter.type'.",
    "Invalid type for 'moderation': expected a string, but got an integer instead.",
    'Invalid JSON payload received. Unknown name "content_filter": Cannot find field.',
    'moderation: Extra inputs are not permitted',
    "Additional properties are not allowed ('moderation' was unexpected)",
  ].map((message): FaultRow => [`a member: ${message}`, 400, says(message), ...REQUEST]),
  ['a failure of moderation itself', 400, { code: 'ContentSecurityDetectionError' }, ...REQUEST],
  ...[400, 405, 409, 410, 415, 418, 422, 424, 431, 451, 499].map(
    (status): FaultRow => ['anything', status, says('No.'), ...REQUEST],
  ),
  ...[500, 501, 502, 504, 520, 599].map((status): FaultRow => ['anything', status, {}, ...MODEL]),
  ...[503, 529].map((status): FaultRow => ['anything', status, {}, ...BUSY]),
  ['a timeout', 408, {}, ...MODEL],
  ['a timeout, as OpenRouter does', 408, says('Your request timed out', { code: 408 }), ...MODEL],
  ['capacity, as Groq does', 498, { code: 'capacity_exceeded' }, ...BUSY],
  ...['ModelErrorException', 'ModelStreamErrorException'].map(
    (type): FaultRow => [
      `the model, as Bedrock does by ${type}`,
      424,
      says('The system encountered an unexpected error during processing.', { type }),
      ...MODEL,
    ],
  ),
  ...['ServiceQuotaExceededException', 'ThrottlingException'].map(
    (type): FaultRow => [
      `our quota, as Bedrock does by ${type}`,
      400,
      says('Your request was denied. You can send it again later.', { type }),
      ...LIMITED,
      {},
      2000,
    ],
  ),
  ...[400, 403].map(
    (status): FaultRow => [
      'our access to one model, as Bedrock does',
      status,
      says("You don't have access to the model with the specified model ID."),
      ...MODEL,
      { 'x-amzn-errortype': 'AccessDeniedException' },
    ],
  ),
  ...['AccessDeniedException', 'NotAuthorized', 'IncompleteSignature', 'RequestExpired'].map(
    (type): FaultRow => [
      `our access, as Bedrock does by ${type}`,
      400,
      says('The request is denied.'),
      ...OURS,
      { 'x-amzn-errortype': `${type}:http://internal.amazon.com/` },
    ],
  ),
  ...[413, 429].map(
    (status): FaultRow => [
      'a request over our limit',
      status,
      says(
        'Request too large for gpt-x in organization org-1 on tokens per min (TPM): Limit 9, Requested 10.',
        {
          type: 'tokens',
          code: 'rate_limit_exceeded',
        },
      ),
      'request_too_large',
      'none',
      true,
    ],
  ),
  ['our quota', 429, says('You exceeded your current quota.', { code: 'insufficient_quota' }), ...OURS],
  ...(
    [
      ['OpenAI', 429, { code: 'billing_not_active' }],
      ['OpenAI', 400, { code: 'billing_hard_limit_reached', type: 'invalid_request_error' }],
      ['Kimi', 429, { type: 'exceeded_current_quota_error' }],
      ['Kimi Code', 403, { type: 'access_terminated_error' }],
      ['Ark', 403, { code: 'AccountOverdueError', type: 'Forbidden' }],
      ['Qwen', 400, { code: 'Arrearage' }],
      ['Qwen', 403, { code: 'AllocationQuota.FreeTierOnly' }],
      ['Zhipu', 429, { code: '1113' }],
      ['Zhipu', 429, says('Insufficient balance or no resource package. Please recharge.')],
      ['Grok', 403, says('Your team 0-1 has either used all available credits or reached its limit.')],
      ['DeepSeek', 402, says('Insufficient Balance', { code: 'invalid_request_error' })],
    ] as const
  ).map(
    ([provider, status, error]): FaultRow => [
      `our account, as ${provider} does by ${JSON.stringify(error)}`,
      status,
      error,
      ...OURS,
    ],
  ),
  ...['QuotaExceeded', 'SetLimitExceeded'].map(
    (code): FaultRow => [`our quota for the model, as Ark does by ${code}`, 429, { code }, ...MODEL],
  ),
  ...(
    [
      ['Ark', 429, { code: 'ServerOverloaded', type: 'TooManyRequests' }],
      ['Kimi', 429, { type: 'engine_overloaded_error' }],
      ['Zhipu', 429, { code: '1305' }],
      ['Cerebras', 429, { code: 'queue_exceeded', type: 'too_many_requests_error' }],
      ['Anthropic', 529, { type: 'overloaded_error' }],
      ['a server of Ark', 500, { code: 'ServerOverloaded' }],
    ] as const
  ).map(
    ([provider, status, error]): FaultRow => [
      `an overload, as ${provider} does by ${JSON.stringify(error)}`,
      status,
      error,
      ...BUSY,
    ],
  ),
  ['no wait', 429, {}, ...LIMITED, {}, 2000],
  ['a wait', 429, {}, ...LIMITED, { 'retry-after': '7' }, 7000],
  ['a long wait', 429, {}, ...LIMITED, { 'retry-after': '86400' }, 60_000],
  ['an endless wait', 429, {}, ...LIMITED, { 'retry-after': '1e999' }, 60_000],
  ...['0', '-3', 'soon', 'Thu, 01 Jan 1970 00:00:00 GMT', 'NaN', '0.0'].flatMap((wait): FaultRow[] => [
    [`a wait of ${wait}`, 429, {}, ...LIMITED, { 'retry-after': wait }, 1000],
    [`a wait of ${wait} ms`, 429, {}, ...LIMITED, { 'retry-after-ms': wait }, 1000],
  ]),
]

const firstOfEach = (rows: readonly FaultRow[], ways: (row: FaultRow) => unknown[]): FaultRow[] =>
  rows.filter((row, i) => rows.findIndex((other) => `${ways(row)}` === `${ways(other)}`) === i)

/** Errors that name their status under status 200. */
export const NAMED: readonly FaultRow[] = firstOfEach(TABLE, ([, status, , code]) => [status, code])
  .filter(([, status]) => status !== 499 && status < 520)
  .map(([what, status, error, ...rest]) => [what, status, { ...(error as object), status }, ...rest])

/** One of the rows for each thing that a line and its callers can notice of an error. */
export const noticed = (rows: readonly FaultRow[]): FaultRow[] =>
  firstOfEach(rows, ([, , , code, fault, next, , restMs]) => [code, fault, next, restMs])
