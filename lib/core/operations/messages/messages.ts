import type { Feature } from '../../catalog/index.ts'
import { isJsonObject, type JsonObject, memberText, someObject } from '../../json/index.ts'
import { renamedBody } from '../body/upstream-body.ts'
import { sealedTokens } from '../metering/output-tokens.ts'
import {
  jsonText,
  TOKENS_PER_FILE,
  TOKENS_PER_IMAGE,
  TOKENS_PER_MESSAGE,
  TOKENS_PER_REQUEST,
} from '../metering/token-estimate.ts'
import { mostWebSearches } from '../metering/web-searches.ts'
import {
  featuresOf,
  PREFIX_CHARS,
  type RequestFacts,
  type StreamingOperation,
  type TokenEstimator,
} from '../operation.ts'
import { readMessageAnswer } from './messages-answer.ts'
import { messageForm } from './messages-form.ts'
import { type Block, type MessagesBody, messageSchema } from './messages-schema.ts'
import { MessageStreamReader } from './messages-stream.ts'

/** Anthropic-style message: `POST /v1/messages`. */
export const messages: StreamingOperation = {
  name: 'messages',
  kind: 'chat',
  priceUnit: 'tokens',
  protocol: 'anthropic',
  path: '/v1/messages',
  upstreamPath: '/messages',
  schema: messageSchema,
  facts: messageFacts,
  promptPrefix: (json) => promptPrefix(json as MessagesBody),
  keeps: ({ container, thread, tools }) =>
    (container ?? thread ?? undefined) !== undefined || someObject(tools, isUpstreamsOwn),
  upstreamBody: (raw, json, { model }) => renamedBody(raw, json, model),
  answerForm: messageForm,
  readAnswer: readMessageAnswer,
  streamTerminator: 'event: message_stop\ndata: {"type":"message_stop"}\n\n',
  streamReader: ({ json }) => new MessageStreamReader(json),
}

/** Returns the facts of a body that {@link messageSchema} accepts, with or without `max_tokens`. */
export function messageFacts(
  json: Readonly<Record<string, unknown>>,
  raw: Buffer,
  estimate: TokenEstimator,
): RequestFacts {
  return new MessageCounter(json as MessagesBody, raw, estimate).facts()
}

/** Of the caller, of an MCP server, or of the upstream itself. */
const USES_TOOL = /(?:^|_)tool_use$/

/** Walks through a body once, adds up tokens and images, and notes which member asks for which feature. */
class MessageCounter {
  readonly #body: MessagesBody
  readonly #raw: Buffer
  readonly #estimate: TokenEstimator
  readonly #featureParams = new Map<Feature, string>()
  #tokens = TOKENS_PER_REQUEST
  #images = 0

  constructor(body: MessagesBody, raw: Buffer, estimate: TokenEstimator) {
    this.#body = body
    this.#raw = raw
    this.#estimate = estimate
  }

  facts(): RequestFacts {
    const body = this.#body
    if (body.system) this.#addContent(body.system, 'system')
    for (const [i, { content: given }] of body.messages.entries()) {
      this.#tokens += TOKENS_PER_MESSAGE
      this.#addContent(given, `messages[${i}].content`)
    }
    const tools = body.tools?.length ?? 0
    if (tools > 0) {
      this.#featureParams.set('tools', 'tools')
      this.#tokens += this.#estimate(memberText(this.#raw, 'tools') ?? '')
    }
    if (body.output_config?.format)
      this.#tokens += this.#estimate(memberText(this.#raw, 'output_config') ?? '')
    if (body.stream === true) this.#featureParams.set('stream', 'stream')
    if (body.output_config?.format) this.#featureParams.set('json', 'output_config.format')
    if (body.thinking && body.thinking.type !== 'disabled') this.#featureParams.set('reasoning', 'thinking')
    return {
      model: body.model,
      stream: body.stream === true,
      features: featuresOf(this.#featureParams),
      featureParams: this.#featureParams,
      estimatedInputTokens: this.#tokens,
      maxOutputTokens: body.max_tokens,
      answers: 1,
      messages: body.messages.length,
      tools,
      images: this.#images,
      webSearches: mostWebSearches(body.tools),
    }
  }

  #addContent(given: string | readonly Block[], path: string): void {
    if (typeof given === 'string') this.#tokens += this.#estimate(given)
    else for (const [i, item] of given.entries()) this.#addBlock(item, `${path}[${i}]`)
  }

  #addBlock(item: Block, path: string): void {
    if (typeof item.text === 'string') this.#tokens += this.#estimate(item.text)
    else if (item.type === 'image') this.#addImage(path)
    else if (item.type === 'tool_result') this.#addToolResult(item.content, `${path}.content`)
    else if (item.type === 'thinking' && typeof item.thinking === 'string')
      this.#tokens += this.#estimate(item.thinking)
    else if (item.type === 'redacted_thinking') this.#tokens += sealedTokens(item.data)
    else if (USES_TOOL.test(item.type)) this.#tokens += this.#estimate(jsonText(item.input))
    else this.#addSource(item, path)
  }

  /** Counts a document, search results, and what else has its content beside its source. */
  #addSource({ source, content: own, title, context }: Block, path: string): void {
    for (const text of [title, context]) if (typeof text === 'string') this.#tokens += this.#estimate(text)
    const isOwn = own !== undefined && own !== null
    if (isOwn) this.#addKnown(own, path)
    if (isJsonObject(source)) {
      const { type, data, content: given } = source
      this.#addKnown(type === 'text' ? data : type === 'content' ? given : undefined, path)
    } else if (!isOwn) this.#tokens += TOKENS_PER_FILE
  }

  /** Counts a content, which counts like a file where it is not in the request. */
  #addKnown(known: unknown, path: string): void {
    if (typeof known === 'string' && known !== '') this.#tokens += this.#estimate(known)
    else if (isJsonObject(known)) this.#addPart(known, path)
    else if (Array.isArray(known)) for (const part of known) this.#addPart(part, path)
    else this.#tokens += TOKENS_PER_FILE
  }

  /** Counts a part of a document or of search results. Only the upstream can read sealed content. */
  #addPart(part: unknown, path: string): void {
    if (!isJsonObject(part)) this.#tokens += this.#estimate(jsonText(part))
    else if (part.type === 'image') this.#addImage(path)
    else
      for (const name in part)
        this.#tokens +=
          name === 'encrypted_content' ? sealedTokens(part[name]) : this.#estimate(jsonText(part[name]))
  }

  #addImage(path: string): void {
    this.#images++
    this.#tokens += TOKENS_PER_IMAGE
    if (!this.#featureParams.has('vision')) this.#featureParams.set('vision', path)
  }

  /**
   * Counts the content of a tool result. A tool result inside a tool result is not counted, so that there is no
   * recursion.
   */
  #addToolResult(result: unknown, path: string): void {
    if (typeof result === 'string') this.#tokens += this.#estimate(result)
    if (!Array.isArray(result)) return
    for (const [i, item] of result.entries()) {
      if (isBlock(item) && item.type !== 'tool_result') this.#addBlock(item, `${path}[${i}]`)
    }
  }
}

function isBlock(value: unknown): value is Block {
  return typeof value === 'object' && value !== null
}

/** Whether a tool has a type of the upstream's, such as `code_execution_20250825`: it may leave containers and files. */
function isUpstreamsOwn({ type }: JsonObject): boolean {
  return typeof type === 'string' && type !== 'custom'
}

function promptPrefix(body: MessagesBody): string {
  let prefix = textOf(body.system ?? '')
  for (const { role, content: given } of body.messages) {
    if (prefix.length >= PREFIX_CHARS) break
    prefix += `\n${role}:${textOf(given)}`
  }
  return prefix.slice(0, PREFIX_CHARS)
}

function textOf(given: string | readonly Block[]): string {
  return typeof given === 'string' ? given : given.map((item) => item.text ?? '').join('')
}
