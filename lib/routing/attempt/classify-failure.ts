import type { IncomingHttpHeaders } from 'node:http'
import { type Failure, goneFromLine } from './failure.ts'
import { redactUpstreamText } from './redact-upstream-text.ts'
import { contextReasonOf, reasonOf } from './refusal-reason.ts'
import { errorIn, type UpstreamError } from './upstream-error.ts'
import { cappedWait, retryAfterOf } from './upstream-retry-after.ts'

/** Classifies an answer with a status other than 200, with whatever body came along. */
export function failureOfStatus(status: number, headers: IncomingHttpHeaders, body: unknown): Failure {
  return classify(status, errorIn(body, headers), headers, body)
}

/**
 * Classifies an error that stands in place of an answer with status 200, or comes in a stream, by the status or code
 * that it names.
 *
 * @param body the object that holds the error.
 */
export function failureOfError(body: unknown, headers: IncomingHttpHeaders = {}): Failure {
  const error = errorIn(body, headers)
  return classify(statusNamedBy(error), error, headers, body)
}

/** Returns the status that an error in place of an answer stands for. */
export function statusOfError(body: unknown): number {
  return statusNamedBy(errorIn(body))
}

function classify(
  status: number,
  error: UpstreamError,
  headers: IncomingHttpHeaders,
  body: unknown,
): Failure {
  const effective = effectiveStatus(status, error)
  const failure = {
    ...classifyByStatus(effective, error, detailOf(status, error)),
    ...(hasWords(error) && { error }),
  }
  const refusedWithoutWork = (effective >= 400 && effective < 500) || effective === 503 || effective === 529
  if (failure.code === 'upstream_rate_limited')
    return { ...failure, refusedWithoutWork, retryAfterMs: retryAfterOf(headers, body) }
  if (failure.code !== 'upstream_overloaded') return { ...failure, refusedWithoutWork }
  return { ...failure, refusedWithoutWork, retryAfterMs: cappedWait(retryAfterOf(headers, body)) }
}

/** Returns the status that says what an upstream means: some 4xx are not the request's fault. */
function effectiveStatus(status: number, error: UpstreamError): number {
  const { type } = error
  if (status === 408) return 504
  if (namesOverload(error)) return 503
  if (status >= 400 && status < 500 && namesEmptyAccount(error)) return 402
  // Groq's, for capacity.
  if (status === 498) return 503
  // The next ones are Bedrock's.
  if (status === 424 && /^Model(?:Stream)?ErrorException$/.test(type)) return 502
  return (status === 400 ? AWS_STATUS.get(type) : undefined) ?? status
}

/** The statuses that errors of AWS stand for, which Bedrock may send with a 400: our quota, our access, our signature. */
const AWS_STATUS: ReadonlyMap<string, number> = new Map([
  ['ServiceQuotaExceededException', 429],
  ['ThrottlingException', 429],
  ['AccessDeniedException', 401],
  ['NotAuthorized', 401],
  ['IncompleteSignature', 401],
  ['RequestExpired', 401],
])

/**
 * The names by which upstreams report an overload of their servers, often with a 429: Ark, Kimi, Anthropic, OpenAI and
 * Cerebras, and Zhipu by number. A rate limit is ours, so a rest of the line would be the wrong answer to an overload.
 */
const OVERLOAD =
  /^(?:server_?overloaded|server_is_overloaded|engine_overloaded(?:_error)?|overloaded(?:_error)?|model_overloaded|queue_exceeded|1305)$/i

function namesOverload({ type, code }: UpstreamError): boolean {
  return OVERLOAD.test(code) || OVERLOAD.test(type)
}

/**
 * The names by which upstreams report that an account of ours is empty, unpaid, suspended or at its spending limit:
 * OpenAI, Kimi, Ark, Qwen, DeepSeek and OpenRouter, and Zhipu by number. A wait does not help; the account
 * has to be topped up.
 */
const EMPTY_ACCOUNT =
  /^(?:insufficient_quota|quota_exceeded|exceeded_current_quota_error|billing_(?:not_active|hard_limit_reached|error)|access_terminated(?:_error)?|account_deactivated|AccountOverdueError|Arrearage|insufficient_(?:balance|credits|funds)|payment_required|credits_required|AllocationQuota\.FreeTierOnly|1113)$/i
/** How upstreams say so whose code says less: Anthropic, Zhipu and Grok. */
const EMPTY_ACCOUNT_TEXT =
  /^\W*(?:your credit balance is|insufficient (?:account )?balance\b|your team .{1,80} has (?:either )?used all available credits)/i

function namesEmptyAccount({ type, code, param, message }: UpstreamError): boolean {
  if (EMPTY_ACCOUNT.test(code) || EMPTY_ACCOUNT.test(type)) return true
  return param === undefined && EMPTY_ACCOUNT_TEXT.test(message)
}

/** Ark's codes for a model whose quota we have used up, or that our own limit has paused. */
const MODEL_QUOTA = /^(?:QuotaExceeded|SetLimitExceeded)$/

/** Whether an upstream says anything about an error. */
function hasWords({ type, code, message, param }: UpstreamError): boolean {
  return type !== '' || code !== '' || message !== '' || param !== undefined
}

/** The statuses that types and codes of errors stand for. */
const STATUS_BY_NAME: ReadonlyMap<string, number> = new Map(
  Object.entries({
    400: 'invalid_request_error invalid_request invalid_prompt INVALID_ARGUMENT FAILED_PRECONDITION BadRequestError',
    401: 'authentication_error invalid_api_key invalid_authentication UNAUTHENTICATED AuthenticationError',
    402: 'billing_error billing_not_active insufficient_credits payment_required',
    403: 'permission_error permission_denied PERMISSION_DENIED access_denied PermissionDeniedError',
    404: 'not_found_error not_found NOT_FOUND model_not_found NotFoundError',
    413: 'request_too_large',
    429: 'rate_limit_error rate_limit_exceeded rate_limited insufficient_quota quota_exceeded too_many_requests RESOURCE_EXHAUSTED RateLimitError',
    503: 'server_is_overloaded slow_down overloaded UNAVAILABLE service_unavailable',
    504: 'timeout_error DEADLINE_EXCEEDED',
    529: 'overloaded_error',
  }).flatMap(([status, names]) =>
    names.split(' ').map((name) => [name.toLowerCase(), Number(status)] as const),
  ),
)

function statusNamedBy(error: UpstreamError): number {
  const { type, code, status } = error
  if (status !== undefined) return status
  if (CONTEXT_CODES.has(code) || namesPolicy(error) || REQUEST_CODES.test(code)) return 400
  return STATUS_BY_NAME.get(code.toLowerCase()) ?? STATUS_BY_NAME.get(type.toLowerCase()) ?? 500
}

const CONTEXT_CODES = new Set([
  'context_length_exceeded',
  'model_context_window_exceeded',
  'string_above_max_length',
  // Ark's.
  'OutofContextError',
  // llama.cpp's, which is a type.
  'exceed_context_size_error',
])
const CONTEXT_TEXT = new RegExp(
  [
    'context.{0,12}(?:length|window|limit)|maximum context|(?:prompt|input) is too long|too many (?:input )?tokens',
    // llama.cpp, Gemini, Nova, Grok, Kimi, Qwen, OpenAI's embeddings, vLLM, TGI.
    'available context size|input token count .{0,40}exceeds|input tokens exceeded|maximum prompt length is|exceeded model token limit',
    'range of input length should be|maximum input length is|longer than the maximum model length',
    '`inputs` (?:tokens \\+ `max_new_tokens` must be|must have less than \\d+ tokens)',
  ].join('|'),
  'i',
)
const POLICY_CODES = new Set([
  'content_policy_violation',
  'content_filter',
  'content_filtered',
  'moderation_blocked',
  'responsible_ai_policy_violation',
  'ResponsibleAIPolicyViolation',
  'image_content_policy_violation',
  'bio_policy',
  'misalignment_policy_violation',
])
/** Codes of Ark's moderation, such as `InputTextSensitiveContentDetected.PolicyViolation`, and of Qwen's. */
const POLICY_CODE = /SensitiveContentDetected|RiskDetection$|^data_inspection_failed$/
const POLICY_TEXT =
  /content exists risk|content[ _-]?(?:filter|polic|management|moderation|safety)|usage (?:polic|guideline)|safety (?:system|filter|polic)|moderation|\bflagged\b/i
/** How upstreams refuse a member that they do not know, or read. Its name, such as `moderation`, says nothing of the content. */
const UNKNOWN_MEMBER =
  /^\W*(?:unknown|unrecogni[sz]ed|unsupported|unexpected) (?:request )?(?:parameter|(?:keyword )?argument|field|property)\b|^\W*(?:missing required parameter|invalid type for)\b|\bunknown name "|\bextra inputs are not permitted|\badditional properties are not allowed/i
/** How OpenAI (429) and Groq (413) refuse a request that is larger by itself than our tokens per minute there. */
const OVER_LIMIT = /^\W*request too large for .{1,300} on tokens per/i
/** Codes of a response or stream that fails after its request was accepted, although the request is at fault. */
const REQUEST_CODES =
  /^(?:invalid_(?:prompt|image|base64_image)|image_(?:too|parse|content|file)|empty_image|unsupported_image|failed_to_download_image)/

/** @param status the one that is meant. */
function classifyByStatus(status: number, error: UpstreamError, detail: string): Failure {
  const passing = { retryable: true, detail }
  const final = { retryable: false, fault: null, detail }
  const invalid: Failure = { ...final, code: 'invalid_request', param: error.param }
  if (lacksPreviousResponse(status, error)) return { ...goneFromLine(), param: 'previous_response_id' }
  // Another line may have a larger limit. A rest would keep smaller requests away.
  if ((status === 413 || status === 429) && OVER_LIMIT.test(error.message))
    return { ...passing, code: 'request_too_large', fault: null }
  if (status < 400 || status >= 500) {
    const code = status === 503 || status === 529 ? 'upstream_overloaded' : 'upstream_error'
    return { ...passing, code, fault: 'model' }
  }
  if (deniesModel(error)) return { ...passing, code: 'upstream_error', fault: 'model' }
  switch (status) {
    case 401:
      return { ...passing, code: 'upstream_error', fault: 'line' }
    case 402:
    case 403:
      if (judgesContent(error)) return { ...final, code: 'content_filtered' }
      if (status === 402 || namesOurAccount(error) || refusesUs(error))
        return { ...passing, code: 'upstream_error', fault: 'line' }
      return invalid
    case 404:
      if (namesOwnResource(error)) return invalid
      return {
        ...passing,
        code: 'upstream_error',
        fault: 'model',
        unknownPath: !/model|deployment/i.test(wordsOf(error)),
      }
    case 429:
      if (MODEL_QUOTA.test(error.code)) return { ...passing, code: 'upstream_error', fault: 'model' }
      return { ...passing, code: 'upstream_rate_limited', fault: null }
    case 400:
    case 413:
    case 422:
      // Azure's: the model serves other endpoints.
      if (status === 400 && error.code === 'OperationNotSupported')
        return { ...passing, code: 'upstream_error', fault: null }
      if (status === 400 && saysModelUnknown(error))
        return { ...passing, code: 'upstream_error', fault: 'model' }
      if (status === 400 && refusesUs(error)) return { ...passing, code: 'upstream_error', fault: 'line' }
      if (UNKNOWN_MEMBER.test(error.message)) return invalid
      if (exceedsContext(error)) return { ...final, code: 'context_too_long', reason: contextReasonOf(error) }
      if (namesPolicy(error) || POLICY_TEXT.test(error.message)) return { ...final, code: 'content_filtered' }
      return status === 413
        ? { ...final, code: 'request_too_large', reason: reasonOf(error) }
        : { ...invalid, reason: reasonOf(error) }
    case 412:
      return refusesUs(error) ? { ...passing, code: 'upstream_error', fault: 'line' } : invalid
    default:
      return invalid
  }
}

/** The members that can fill a context. A name or an id that is too long fills none. */
const PROMPT_MEMBER = /(?:^|\.)(?:content|text|input|prompt|instructions|output|arguments)(?:\[\d+\])*$/

function exceedsContext({ type, code, param, message }: UpstreamError): boolean {
  if (code === 'string_above_max_length') return param === undefined || PROMPT_MEMBER.test(param)
  return CONTEXT_CODES.has(code) || CONTEXT_CODES.has(type) || CONTEXT_TEXT.test(message)
}

/** Whether the code of an error is that of moderation, or its type, as Kimi's. */
function namesPolicy({ type, code }: Pick<UpstreamError, 'type' | 'code'>): boolean {
  return POLICY_CODES.has(code) || POLICY_CODES.has(type) || POLICY_CODE.test(code)
}

/** Matches names of the credentials and the account that the gateway has at the upstream. */
const OUR_ACCOUNT =
  /\b(?:api[ _-]?)?keys?\b|\bcredentials?\b|\btokens?\b|\b(?:un)?authori[sz]|\bauthenticat|\baccounts?\b|\borgani[sz]ations?\b|\bprojects?\b|\bsubscriptions?\b|\bworkspaces?\b|billing|payment|\bcredits?\b|\bbalance\b|\bquota\b|permission|\bsignatures?\b|\baccess\b|not allowed to/i

/** Whether an error names our key, account, billing or permission. */
function namesOurAccount(error: UpstreamError): boolean {
  return OUR_ACCOUNT.test(wordsOf(error))
}

/** Matches the beginning of a 400 that refuses our key or account. Behind a name of the request's it would be about that. */
const ACCOUNT_REFUSED =
  /^\W*(?:you have reached your specified api usage|billing hard limit has|access denied, please make sure your account|(?:incorrect|invalid) api key\b|api key (?:not|expired)\b|(?:this |your )?(?:account|organi[sz]ation) (?:[\w-]{1,100} )?(?:is|was|has been) (?:not|suspended|disabled|deactivated)\b)/i

/** How OpenAI, Anthropic and Gemini refuse the country or address that the gateway sends from. */
const PLACE_REFUSED =
  /^\W*(?:country, region, or territory not supported|request not allowed\W*$|user location is not supported)/i

/** Whether an upstream refuses our key, account or place, under a status that is the request's fault otherwise. */
function refusesUs({ param, message }: UpstreamError): boolean {
  return param === undefined && (ACCOUNT_REFUSED.test(message) || PLACE_REFUSED.test(message))
}

/** Whether Bedrock denies our account a model. Access is granted for each. */
function deniesModel({ type, message }: UpstreamError): boolean {
  return type === 'AccessDeniedException' && /\baccess to the model\b/i.test(message)
}

/** Whether an error judges what the request says. One about our account may name a policy, too. */
function judgesContent({ type, code, message }: UpstreamError): boolean {
  if (namesPolicy({ type, code }) || POLICY_TEXT.test(`${type} ${code}`.replaceAll('_', ' '))) return true
  const isOurs =
    /^\W*(?:your|the|this) (?:api[ _-]?key|account|organi[sz]ation|project|subscription)\b/i.test(message)
  return !isOurs && (POLICY_TEXT.test(message) || /polic(?:y|ies)\b/i.test(message))
}

/** The things of a request that a line may lack: each is one that an earlier request made there. */
const OWN_THING =
  /\b(?:files?|vector ?-?stores?|threads?|containers?|items?|assistants?|conversations?|batch(?:es)?|uploads?|cached? ?contents?|skills?|voices?)\b/i
/** The forms of their ids. */
const OWN_ID = /\b(?:file|vs|thread|cntr|resp|conv|msg|rs|item|asst|batch|pmpt|upload)[-_]\w/i

/** Whether a 404 is about something that the request names. */
function namesOwnResource(error: UpstreamError): boolean {
  if (saysModelUnknown(error)) return false
  if (error.param !== undefined && error.param !== 'model') return true
  if (/^\W*model\b/i.test(error.message)) return false
  return OWN_THING.test(wordsOf(error)) || OWN_ID.test(error.message)
}

const UNKNOWN_MODEL_CODES =
  /^(?:model_not_found|unknown_model|invalid_model|invalid_model_error|model_not_available|DeploymentNotFound)$/i
const UNKNOWN_MODEL_TEXT =
  /\bmodel:?\s+\S{1,200}\s+(?:does not exist|doesn['’]t exist|do(?:es)? not have access|is not found|not found|is unknown|is not available|not available|is not a valid model|has been (?:deprecated|decommissioned|retired|removed))|\b(?:unknown|no such|unrecogni[sz]ed) model\b|\bmodel identifier is invalid\b|\bon-demand throughput isn['’]t supported|\bmodel doesn['’]t support on-demand throughput|\bis not a valid model\b|^\W*(?:the |this )?model (?:does not exist|was not found|not found|is not available)/i

/** Whether an upstream says that it does not know the model. */
function saysModelUnknown({ type, code, param, message }: UpstreamError): boolean {
  if (UNKNOWN_MODEL_CODES.test(code) || UNKNOWN_MODEL_CODES.test(type)) return true
  return (param === undefined || param === 'model') && UNKNOWN_MODEL_TEXT.test(message)
}

/** Whether the upstream does not have the previous response that the request names. */
function lacksPreviousResponse(status: number, { code, param }: UpstreamError): boolean {
  return code === 'previous_response_not_found' || (status === 404 && param === 'previous_response_id')
}

function wordsOf({ type, code, message }: UpstreamError): string {
  return `${type} ${code} ${message}`.replaceAll('_', ' ')
}

/** The upstream's text for the call log, as far as it is kept. */
function detailOf(status: number, { type, code, message, param = '' }: UpstreamError): string {
  const words = [type, code, param, message]
    .map(redactUpstreamText)
    .filter((text) => text !== '' && text !== '…')
  return words.length === 0 ? `status ${status}` : [...new Set(words)].join(': ')
}
