import { Fault } from './faults.ts'
import { countTokens } from './tokens.ts'

/** A JSON object of unknown content. */
export type JsonObject = { readonly [member: string]: unknown }

/** A tool the model may call. */
export interface Tool {
  readonly name: string
  /** JSON Schema of its arguments. */
  readonly schema: unknown
}

/** Which tool the caller wants called: any fitting one, none, one in any case, or this one. */
export type ToolChoice = 'auto' | 'none' | 'any' | { readonly name: string }

/** A request to write something, read off either protocol. */
export interface Prompt {
  readonly model: string
  readonly stream: boolean
  /** OpenAI-style streams: send the chunk that carries the usage. */
  readonly includeUsage: boolean
  /** How many answers are wanted, at least 1. */
  readonly choices: number
  readonly system: string
  /** Text of the last message of the user's. */
  readonly lastUserText: string
  /** Text of the tool result the conversation ends with, if it ends with one. */
  readonly toolResult: string | undefined
  readonly tools: readonly Tool[]
  readonly toolChoice: ToolChoice
  /** JSON is wanted: any object, or one of this schema. */
  readonly json: 'object' | { readonly schema: unknown } | undefined
  readonly maxOutputTokens: number
  readonly inputTokens: number
  /** Of a request for a response. */
  readonly response?: AskedResponse
}

/** What a response is to go on from, and whether it is to be kept. */
export interface AskedResponse {
  readonly previousId: string | null
  readonly stored: boolean
  readonly input: readonly JsonObject[]
  /** The conversation before the input. */
  readonly before: readonly JsonObject[]
}

const TOKENS_PER_REQUEST = 3
const TOKENS_PER_MESSAGE = 4
const TOKENS_PER_IMAGE = 85

/** The value if it is a JSON object. */
export function asObject(value: unknown): JsonObject | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as JsonObject)
    : undefined
}

/** The objects in a list; nothing if it is no list. */
export function objectsIn(value: unknown): JsonObject[] {
  return Array.isArray(value) ? value.map(asObject).filter((item) => item !== undefined) : []
}

/** Text of a message's content: a string, or content parts of which the text ones count. */
export function textOf(content: unknown): string {
  if (typeof content === 'string') return content
  return objectsIn(content)
    .map((part) => (typeof part.text === 'string' ? part.text : ''))
    .filter((text) => text !== '')
    .join('\n')
}

/** `model` and `messages`, which both protocols have and demand. */
export function readConversation(body: JsonObject): { model: string; messages: JsonObject[] } {
  if (typeof body.model !== 'string' || body.model === '') {
    throw new Fault('invalid_request', { message: 'model: a string is required.', param: 'model' })
  }
  const messages = objectsIn(body.messages)
  if (messages.length === 0 || messages.some((message) => typeof message.role !== 'string')) {
    const message = 'messages: at least one message with a role is required.'
    throw new Fault('invalid_request', { message, param: 'messages' })
  }
  return { model: body.model, messages }
}

/** A whole number in its bounds, or the fallback where the member is absent or null. */
export function readCount(body: JsonObject, member: string, fallback: number, maximum: number): number {
  const value = body[member]
  if (value === undefined || value === null) return fallback
  if (typeof value !== 'number' || !Number.isInteger(value) || value < 1) {
    const message = `${member}: a whole number from 1 is required.`
    throw new Fault('invalid_request', { message, param: member })
  }
  return Math.min(value, maximum)
}

/** What the model reads, counted simply: texts by their tokens, images and envelopes by a constant. */
export function countInput(messages: readonly JsonObject[], system: string, tools: readonly Tool[]): number {
  let tokens = TOKENS_PER_REQUEST + countTokens(system)
  if (tools.length > 0) tokens += countTokens(JSON.stringify(tools))
  for (const message of messages) {
    tokens += TOKENS_PER_MESSAGE + countTokens(textOf(message.content))
    for (const part of objectsIn(message.content)) {
      if (part.type === 'image' || part.type === 'image_url') tokens += TOKENS_PER_IMAGE
      if (part.type === 'tool_result') tokens += countTokens(textOf(part.content))
    }
  }
  return tokens
}
