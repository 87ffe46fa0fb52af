import { Fault } from './faults.ts'
import { countTokens } from './tokens.ts'

/** A JSON object of unknown content. */
export type JsonObject = { readonly [member: string]: unknown }

export interface Tool {
  readonly name: string
  /** JSON Schema of its arguments. */
  readonly schema: unknown
}

/** The tool choice of the caller: the model decides, no tool, any tool, or a named one. */
export type ToolChoice = 'auto' | 'none' | 'any' | { readonly name: string }

/** A request for text, independent of the protocol. */
export interface Prompt {
  readonly model: string
  readonly stream: boolean
  /** Whether an OpenAI-style stream has a usage chunk. */
  readonly includeUsage: boolean
  /** The number of answers, at least 1. */
  readonly choices: number
  readonly system: string
  /** The text of the user's last message. */
  readonly lastUserText: string
  /** The text of the tool result at the end of the conversation, if it ends with one. */
  readonly toolResult: string | undefined
  readonly tools: readonly Tool[]
  readonly toolChoice: ToolChoice
  /** The JSON format of the answer: any object, or one of a schema; undefined for text. */
  readonly json: 'object' | { readonly schema: unknown } | undefined
  readonly maxOutputTokens: number
  readonly inputTokens: number
  /** The members of a request for a response. */
  readonly response?: ResponseRequest
}

/** The members of a request for a response that other protocols do not have. */
export interface ResponseRequest {
  readonly previousId: string | null
  readonly stored: boolean
  readonly input: readonly JsonObject[]
  /** The conversation before the input. */
  readonly before: readonly JsonObject[]
}

const TOKENS_PER_REQUEST = 3
const TOKENS_PER_MESSAGE = 4
const TOKENS_PER_IMAGE = 85

export function asObject(value: unknown): JsonObject | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as JsonObject)
    : undefined
}

/** Returns the objects of a list; none if it is not a list. */
export function objectsIn(value: unknown): JsonObject[] {
  return Array.isArray(value) ? value.map(asObject).filter((item) => item !== undefined) : []
}

/** Returns the text of a message's content, which is a string or content parts. */
export function textOf(content: unknown): string {
  if (typeof content === 'string') return content
  return objectsIn(content)
    .map((part) => (typeof part.text === 'string' ? part.text : ''))
    .filter((text) => text !== '')
    .join('\n')
}

/** Reads `model` and `messages`, which both protocols require. */
export function readConversation(body: JsonObject): { model: string; messages: JsonObject[] } {
  const model = readText(body, 'model')
  const messages = objectsIn(body.messages)
  if (messages.length === 0 || messages.some((message) => typeof message.role !== 'string')) {
    const message = 'messages: at least one message with a role is required.'
    throw new Fault('invalid_request', { message, param: 'messages' })
  }
  return { model, messages }
}

/** Returns a member that must be a text. */
export function readText(body: JsonObject, member: string): string {
  const value = body[member]
  if (typeof value !== 'string' || value === '') {
    throw new Fault('invalid_request', { message: `${member}: a string is required.`, param: member })
  }
  return value
}

/** Reads a whole number, at most `maximum`; returns the fallback if the member is absent or null. */
export function readCount(body: JsonObject, member: string, fallback: number, maximum: number): number {
  const value = body[member]
  if (value === undefined || value === null) return fallback
  if (typeof value !== 'number' || !Number.isInteger(value) || value < 1) {
    const message = `${member}: a whole number from 1 is required.`
    throw new Fault('invalid_request', { message, param: member })
  }
  return Math.min(value, maximum)
}

/** Counts input tokens: those of texts, and constants for images and messages. */
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
