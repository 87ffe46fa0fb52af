import type { Feature } from '../../catalog/index.ts'
import { GatewayError } from '../../errors/index.ts'
import { memberText } from '../../json/index.ts'
import { sealedTokens } from '../metering/output-tokens.ts'
import {
  jsonText,
  TOKENS_PER_FILE,
  TOKENS_PER_IMAGE,
  TOKENS_PER_MESSAGE,
  TOKENS_PER_REQUEST,
} from '../metering/token-estimate.ts'
import { mostWebSearches } from '../metering/web-searches.ts'
import { featuresOf, type RequestFacts, type TokenEstimator } from '../operation.ts'
import type { ResponsesBody, ResponsesItem } from './responses-schema.ts'

/**
 * Returns the facts of a response request.
 *
 * @throws {GatewayError} `unsupported_feature` if it asks for something that the gateway cannot do; `invalid_request`
 *   if it is ambiguous.
 */
export function responsesFacts(body: ResponsesBody, raw: Buffer, estimate: TokenEstimator): RequestFacts {
  refuseBackground(body)
  const featureParams = new Map<Feature, string>()
  const count = new InputCount(estimate)
  for (const member of ['instructions', 'input'] as const) {
    const value = body[member]
    if (typeof value === 'string') count.message(value)
    else for (const [i, item] of (value ?? []).entries()) count.item(item, `${member}[${i}]`)
  }
  for (const member of ['tools', 'prediction']) {
    if (body[member]) count.tokens += estimate(memberText(raw, member) ?? '')
  }
  const format = body.text?.format
  // The upstream treats other formats as a parameter; it writes this one into the prompt.
  if (format?.type === 'json_schema') count.tokens += estimate(memberText(raw, 'text') ?? '')
  if (body.tools?.length) featureParams.set('tools', 'tools')
  if (body.stream === true) featureParams.set('stream', 'stream')
  if (format && format.type !== 'text') featureParams.set('json', 'text.format')
  const { effort, summary } = body.reasoning ?? {}
  if ((effort && effort !== 'none') || summary) featureParams.set('reasoning', 'reasoning')
  if (count.firstImage !== undefined) featureParams.set('vision', count.firstImage)
  return {
    model: body.model,
    stream: body.stream === true,
    features: featuresOf(featureParams),
    featureParams,
    estimatedInputTokens: count.tokens,
    // The upstream truncates the input itself.
    ...(body.truncation === 'auto' && { windowTokens: 0 }),
    maxOutputTokens: body.max_output_tokens ?? undefined,
    answers: 1,
    messages: count.messages,
    tools: body.tools?.length ?? 0,
    images: count.images,
    webSearches: mostWebSearches(body.tools, body.max_tool_calls),
  }
}

/** Refuses background responses, whose usage is not known when the request ends. */
function refuseBackground({ background }: ResponsesBody): void {
  if (background !== true) return
  throw new GatewayError('unsupported_feature', {
    param: 'background',
    message: 'Responses are not run in the background here. Stream the response instead.',
  })
}

/** Counts the input that a model reads. */
class InputCount {
  readonly #estimate: TokenEstimator
  tokens = TOKENS_PER_REQUEST
  messages = 0
  images = 0
  /** The path of the first image. */
  firstImage: string | undefined

  constructor(estimate: TokenEstimator) {
    this.#estimate = estimate
  }

  message(text: string): void {
    this.messages++
    this.tokens += TOKENS_PER_MESSAGE + this.#estimate(text)
  }

  item(item: ResponsesItem, place: string): void {
    if (item.type === undefined || item.type === null || item.type === 'message') this.messages++
    this.tokens += TOKENS_PER_MESSAGE
    for (const name in item) {
      const value = item[name]
      if (NOT_READ.has(name)) continue
      if (name === 'encrypted_content') this.tokens += sealedTokens(value)
      else if (PARTS.has(name) && Array.isArray(value)) this.#parts(value, `${place}.${name}`)
      else if (isImage(value)) this.#image(`${place}.${name}`)
      else this.tokens += this.#estimate(jsonText(value))
    }
  }

  #parts(parts: readonly unknown[], place: string): void {
    for (const [i, part] of parts.entries()) {
      if (typeof part !== 'object' || part === null) continue
      const { text, refusal } = part as { text?: unknown; refusal?: unknown }
      if (isImage(part)) this.#image(`${place}[${i}]`)
      else if (typeof text === 'string') this.tokens += this.#estimate(text)
      else if (typeof refusal === 'string') this.tokens += this.#estimate(refusal)
      else this.tokens += TOKENS_PER_FILE
    }
  }

  #image(place: string): void {
    this.images++
    this.tokens += TOKENS_PER_IMAGE
    this.firstImage ??= place
  }
}

/** Members of an item that no model reads. */
const NOT_READ: ReadonlySet<string> = new Set(['type', 'role', 'id', 'call_id', 'status', 'phase'])

/** Members of an item that may be a list of parts. */
const PARTS: ReadonlySet<string> = new Set(['content', 'output', 'summary'])

function isImage(value: unknown): boolean {
  const type = typeof value === 'object' && value !== null ? (value as { type?: unknown }).type : undefined
  return type === 'input_image' || type === 'computer_screenshot'
}
