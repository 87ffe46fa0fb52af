import { serviceTierOf } from '../../catalog/service-tier.ts'
import { isJsonObject, isText, type JsonObject, objectsIn, someObject, tokenCount } from '../../json/index.ts'
import {
  explainsNoOutput,
  type FinishReason,
  finishReasonOf,
  interruptionOf,
  isModerated,
} from '../finish-reasons.ts'
import { tokensPerImage } from '../images/images-answer.ts'
import { sealedTokens } from '../metering/output-tokens.ts'
import { estimateTokens, jsonText } from '../metering/token-estimate.ts'
import { isChargedSearch } from '../metering/web-searches.ts'
import type { AnswerReading, ReportedUsage, ResourceName, Substance } from '../operation.ts'

/** The members of an output item that are read. */
export interface OutputItem {
  readonly type?: unknown
  readonly content?: unknown
  readonly summary?: unknown
  readonly encrypted_content?: unknown
  readonly [member: string]: unknown
}

/** A response of an upstream: complete, or as it is at an event of its stream. */
export interface ResponseObject {
  readonly id?: unknown
  readonly status?: unknown
  readonly error?: unknown
  readonly incomplete_details?: unknown
  readonly output?: unknown
  readonly store?: unknown
  readonly usage?: unknown
  readonly tool_usage?: unknown
}

/** Reads a complete response. Throws SyntaxError if it is not one. */
export function readResponse(json: unknown, request: Readonly<Record<string, unknown>> = {}): AnswerReading {
  const response = json as ResponseObject | null
  if (typeof response !== 'object' || response === null || !Array.isArray(response.output)) {
    throw new SyntaxError('the answer has no "output"')
  }
  const items = objectsIn(response.output)
  return {
    substance: substanceOf(response, items, request),
    usage: readResponseUsage(response, items.filter(isChargedSearch).length),
    estimateOutput: () => items.reduce((sum, item) => sum + itemTokens(item), 0),
    error: errorOf(response),
    finishReason: responseFinishReason(response),
    kept: keptOf(response, items),
  }
}

/** Returns why a response failed; undefined if it did not. */
export function errorOf(response: ResponseObject): unknown {
  const { status, error } = response
  if (status !== 'failed' && status !== 'cancelled') return interruptionOf(reasonOf(response))
  return error ?? { message: `the response has the status "${status}"` }
}

/** Longer ids are not recorded; no upstream is known to send one. */
const MAX_ID_LENGTH = 1024

/** Returns what the upstream keeps of a response. */
function keptOf({ id, store }: ResponseObject, items: readonly OutputItem[]): ResourceName[] {
  const made = items.flatMap(keptOfItem)
  if (store === false) return made.filter(outlivesAnswer)
  return isId(id) ? [{ kind: 'response', id }, ...made] : made
}

/** Whether the upstream keeps a resource even if it does not store the response. */
export function outlivesAnswer({ kind }: ResourceName): boolean {
  return kind === 'container'
}

/** Returns what the upstream keeps of an item: the item, and the container that it ran in. */
export function keptOfItem({ id, container_id: container }: OutputItem): ResourceName[] {
  const kept: ResourceName[] = isId(id) ? [{ kind: 'item', id }] : []
  if (isId(container)) kept.push({ kind: 'container', id: container })
  return kept
}

export function isId(id: unknown): id is string {
  return isText(id) && id.length <= MAX_ID_LENGTH
}

/** Returns the substance of a response that has ended. */
function substanceOf(
  response: ResponseObject,
  items: readonly OutputItem[],
  request: Readonly<Record<string, unknown>>,
): Substance {
  if (items.some(itemRefuses)) return 'refusal'
  if (items.some(itemHasOutput)) return 'output'
  if (stoppedByModeration(response)) return 'filtered'
  return items.some(isReasoning) || endsWithoutOutput(response, request) ? 'no_output' : 'empty'
}

/** Whether there is a reason for a response without output. */
export function endsWithoutOutput(
  response: ResponseObject,
  request: Readonly<Record<string, unknown>>,
): boolean {
  return explainsNoOutput({ stopReason: reasonOf(response), usage: response.usage }, request)
}

export function responseFinishReason(response: ResponseObject): FinishReason | undefined {
  return finishReasonOf(reasonOf(response))
}

/** Returns why a response is incomplete, or else its status; undefined while it runs. */
function reasonOf({ status, incomplete_details: details }: ResponseObject): unknown {
  if (isJsonObject(details) && (details.reason ?? undefined) !== undefined) return details.reason
  return status === 'in_progress' || status === 'queued' ? undefined : status
}

/** Whether moderation ended a response early. */
export function stoppedByModeration({ incomplete_details: details }: ResponseObject): boolean {
  return isJsonObject(details) && isModerated(details.reason)
}

/** Whether an item counts as output: text, a refusal, readable or encrypted reasoning, or a tool call. */
export function itemHasOutput(item: OutputItem): boolean {
  if (item.type === 'message') return someObject(item.content, (part) => partText(part) !== '')
  if (item.type === 'reasoning') return isText(item.encrypted_content) || reasoningText(item) !== ''
  // A list of a server's tools comes before the model has produced anything.
  return item.type !== 'mcp_list_tools'
}

/** Whether an item is reasoning, be it omitted. */
export function isReasoning({ type }: OutputItem): boolean {
  return type === 'reasoning'
}

/** Whether an item contains a refusal by the model. */
export function itemRefuses({ type, content }: OutputItem): boolean {
  return type === 'message' && someObject(content, ({ type }) => type === 'refusal')
}

/** Returns the text of an item that is counted as output. */
export function itemText(item: OutputItem): string {
  if (item.type === 'message') return objectsIn(item.content).map(partText).join('')
  if (item.type === 'reasoning') return reasoningText(item)
  return callText(item)
}

/** Returns the estimated tokens of an item: sealed reasoning and images have some without text. */
export function itemTokens(item: OutputItem): number {
  const tokens = estimateTokens(itemText(item))
  if (item.type === 'reasoning') return Math.max(tokens, sealedTokens(item.encrypted_content))
  return tokens + (item.type === 'image_generation_call' && item.result ? tokensPerImage(item) : 0)
}

/** The members of a tool call that the model writes. */
const CALL_MEMBERS = ['name', 'arguments', 'input', 'code', 'action', 'queries', 'operation'] as const

/** Returns the name and the input of a tool call. */
function callText(item: OutputItem): string {
  return CALL_MEMBERS.map((member) => jsonText(item[member])).join('')
}

function reasoningText({ content, summary }: OutputItem): string {
  return [...objectsIn(content), ...objectsIn(summary)].map(partText).join('')
}

function partText({ text, refusal }: OutputItem): string {
  if (typeof text === 'string') return text
  return typeof refusal === 'string' ? refusal : ''
}

/** The members of a response with counts. */
interface ResponseCounts {
  readonly usage?: unknown
  readonly tool_usage?: unknown
  readonly service_tier?: unknown
}

/**
 * Reads the usage of a response. `input_tokens` includes cached tokens, `output_tokens` includes reasoning. Neither
 * includes the images that a tool of OpenAI's has made: these are counted in `tool_usage`, as are searches.
 *
 * @param searches the web searches among its items.
 */
export function readResponseUsage(
  { usage, tool_usage: ofTools, service_tier: tier }: ResponseCounts,
  searches: number,
): ReportedUsage {
  const tools = isJsonObject(ofTools) ? ofTools : {}
  const searched = isJsonObject(tools.web_search) ? tools.web_search : {}
  const webSearches = tokenCount(searched.num_requests) ?? searches
  const serviceTier = serviceTierOf(tier)
  if (!isJsonObject(usage)) return { webSearches, ...(serviceTier !== undefined && { serviceTier }) }
  const made = isJsonObject(tools.image_gen) ? tools.image_gen : {}
  const input = isJsonObject(usage.input_tokens_details) ? usage.input_tokens_details : {}
  const output = isJsonObject(usage.output_tokens_details) ? usage.output_tokens_details : {}
  const reasoningTokens = tokenCount(output.reasoning_tokens)
  return {
    inputTokens: sumOf(tokenCount(usage.input_tokens), made.input_tokens),
    cachedInputTokens: tokenCount(input.cached_tokens),
    cacheWriteTokens: tokenCount(input.cache_write_tokens),
    audioInputTokens: tokenCount(input.audio_tokens),
    outputTokens: sumOf(outputOf(usage, reasoningTokens), made.output_tokens),
    audioOutputTokens: tokenCount(output.audio_tokens),
    reasoningTokens,
    webSearches,
    ...(serviceTier && { serviceTier }),
  }
}

function sumOf(count: number | undefined, added: unknown): number | undefined {
  return count === undefined ? count : count + (tokenCount(added) ?? 0)
}

/**
 * Returns the output tokens. If there are more reasoning tokens than output tokens, the upstream counts them
 * separately.
 */
function outputOf(usage: JsonObject, reasoning: number | undefined): number | undefined {
  const output = tokenCount(usage.output_tokens)
  if (output === undefined || reasoning === undefined) return output
  return reasoning > output ? output + reasoning : output
}
