import { z } from 'zod'
import type { Feature } from '../../catalog/index.ts'
import { isJsonObject, type JsonObject, objectsIn } from '../../json/index.ts'
import { memberText } from '../body/json-members.ts'
import { listOf } from '../body/list-of.ts'
import { providerConstraintSchema } from '../body/provider-constraint.ts'
import { asksForUsage, meteredBody } from '../body/upstream-body.ts'
import { chatForm } from '../forms/chat-form.ts'
import {
  PREFIX_CHARS,
  type RequestFacts,
  type StreamingOperation,
  type TokenEstimator,
} from '../operation.ts'
import {
  jsonText,
  TOKENS_PER_FILE,
  TOKENS_PER_IMAGE,
  TOKENS_PER_MESSAGE,
  TOKENS_PER_REQUEST,
} from '../tokens/token-estimate.ts'
import { mostChatSearches } from '../web-searches.ts'
import { askedReasoning } from './asked-reasoning.ts'
import { readChoices } from './chat-answer.ts'
import { ChatStreamReader } from './chat-stream.ts'

const part = z.looseObject({
  type: z.string(),
  text: z.string().nullish(),
  // Mistral's clients send the URL itself.
  image_url: z.union([z.looseObject({ url: z.string() }), z.string()]).nullish(),
})

const message = z.looseObject({
  role: z.enum(['developer', 'system', 'user', 'assistant', 'tool', 'function']),
  content: z
    .union([z.string(), listOf(part)], { error: 'must be a string or a list of content parts' })
    .nullish(),
  tool_calls: listOf(z.looseObject({})).nullish(),
})

/** Cursor's tools for Claude are Anthropic's, which have no type. */
const tool = z
  .looseObject({ type: z.string().optional() })
  .refine(({ type, input_schema }) => type !== undefined || isJsonObject(input_schema), {
    path: ['type'],
    error: 'must be a string',
  })

/** The members of a chat completion request that the gateway reads; unknown members pass through unchanged. */
const schema = z.looseObject({
  model: z.string().min(1),
  messages: listOf(message, 1),
  stream: z.boolean().nullish(),
  stream_options: z.looseObject({ include_usage: z.boolean().nullish() }).nullish(),
  n: z.int().min(1).max(128).nullish(),
  max_tokens: z.int().min(1).nullish(),
  max_completion_tokens: z.int().min(1).nullish(),
  temperature: z.number().min(0).max(2).nullish(),
  top_p: z.number().min(0).max(1).nullish(),
  tools: listOf(tool).nullish(),
  functions: listOf(z.looseObject({ name: z.string() })).nullish(),
  response_format: z.looseObject({ type: z.string() }).nullish(),
  reasoning_effort: z.string().nullish(),
  prediction: z.unknown().optional(),
  provider: providerConstraintSchema.nullish(),
})

type ChatBody = z.output<typeof schema>

/** OpenAI-style chat completion: `POST /v1/chat/completions`. */
export const chatCompletions: StreamingOperation = {
  name: 'chat.completions',
  kind: 'chat',
  priceUnit: 'tokens',
  protocol: 'openai',
  path: '/v1/chat/completions',
  upstreamPath: '/chat/completions',
  schema,
  facts: chatFacts,
  promptPrefix: (json) => promptPrefix((json as ChatBody).messages),
  // Spoken answers can be named in later turns.
  keeps: ({ modalities }) => Array.isArray(modalities) && modalities.includes('audio'),
  upstreamBody: meteredBody,
  answerForm: chatForm,
  readAnswer: readChoices,
  streamTerminator: 'data: [DONE]\n\n',
  streamReader: ({ json, answers }) =>
    new ChatStreamReader({ answers, relayUsage: asksForUsage(json), request: json }),
}

function chatFacts(
  json: Readonly<Record<string, unknown>>,
  raw: Buffer,
  estimateTokens: TokenEstimator,
): RequestFacts {
  const body = json as ChatBody
  let asked = NOTHING_ASKED
  let tokens = TOKENS_PER_REQUEST
  let images = 0
  for (let i = 0; i < body.messages.length; i++) {
    const message = body.messages[i] as ChatBody['messages'][number]
    const { content, tool_calls: calls } = message
    tokens += TOKENS_PER_MESSAGE
    // Models read the name, returned reasoning and a function call of the older form.
    for (const name in message) if (!COUNTED.has(name)) tokens += estimateTokens(jsonText(message[name]))
    if (typeof content === 'string') tokens += estimateTokens(content)
    else if (content) {
      for (const [j, part] of content.entries()) {
        for (const item of partsIn(part)) {
          if (item.type === 'image_url') {
            images++
            tokens += TOKENS_PER_IMAGE
            if (!asked.has('vision')) asked = asking(asked, 'vision', `messages[${i}].content[${j}]`)
          } else if (typeof item.text === 'string') tokens += estimateTokens(item.text)
          else if (TOOL_PARTS.has(item.type)) tokens += estimateTokens(jsonText(item.input ?? item.content))
          else if (typeof item.refusal === 'string') tokens += estimateTokens(item.refusal)
          // What was thought, as Mistral's and Anthropic's models put it into the content.
          else if (item.type === 'thinking') tokens += estimateTokens(jsonText(item.thinking))
          else tokens += TOKENS_PER_FILE
        }
      }
    }
    if (calls) for (const call of calls) tokens += estimateTokens(callText(call))
  }
  const tools = body.tools?.length || body.functions?.length || 0
  if (tools > 0) asked = asking(asked, 'tools', body.tools?.length ? 'tools' : 'functions')
  for (const member of COUNTED_AS_WRITTEN) {
    if (body[member]) tokens += estimateTokens(memberText(raw, member) ?? '')
  }
  // The upstream treats other formats as a parameter; it writes this one into the prompt.
  if (body.response_format?.type === 'json_schema')
    tokens += estimateTokens(memberText(raw, 'response_format') ?? '')
  if (body.stream === true) asked = asking(asked, 'stream', 'stream')
  if (body.response_format && body.response_format.type !== 'text')
    asked = asking(asked, 'json', 'response_format')
  if (body.reasoning_effort || body.reasoning || body.thinking) {
    const { param, effort } = askedReasoning(body) ?? {}
    if (param && effort !== 'none') asked = asking(asked, 'reasoning', param)
  }
  return {
    model: body.model,
    stream: body.stream === true,
    features: asked === NOTHING_ASKED ? NO_FEATURES : new Set(asked.keys()),
    featureParams: asked,
    estimatedInputTokens: tokens,
    // Upstreams differ in which of the two members they read. Neither may be 0.
    maxOutputTokens: Math.max(body.max_completion_tokens ?? 0, body.max_tokens ?? 0) || undefined,
    answers: body.n ?? 1,
    messages: body.messages.length,
    tools,
    images,
    webSearches: body.web_search_options || tools > 0 ? mostChatSearches(body) : 0,
  }
}

/** The features of a call that asks for none. Most calls share it. */
const NOTHING_ASKED: ReadonlyMap<Feature, string> = new Map()
const NO_FEATURES: ReadonlySet<Feature> = new Set()

function asking(known: ReadonlyMap<Feature, string>, feature: Feature, param: string) {
  return new Map(known).set(feature, param)
}

/** Parts of Anthropic's that hold a tool call or its result. */
const TOOL_PARTS: ReadonlySet<unknown> = new Set(['tool_use', 'tool_result'])

/** Returns a part of a message; the parts of a tool result in place of that, which may be images. */
function partsIn(part: JsonObject): readonly JsonObject[] {
  return part.type === 'tool_result' && Array.isArray(part.content) ? objectsIn(part.content) : [part]
}

/** Members that the upstream writes into the prompt as they are. */
const COUNTED_AS_WRITTEN = ['tools', 'functions', 'prediction', 'system']

/** Members of a message that have their own way of counting, or are not counted. */
const COUNTED: ReadonlySet<string> = new Set(['role', 'content', 'tool_calls', 'tool_call_id'])

/** Returns name and arguments of an earlier tool call, which are part of the prompt. */
function callText(call: Readonly<Record<string, unknown>>): string {
  const fn = call.function
  if (typeof fn !== 'object' || fn === null) return ''
  const { name, arguments: args } = fn as { name?: unknown; arguments?: unknown }
  return `${typeof name === 'string' ? name : ''} ${jsonText(args)}`
}

function promptPrefix(messages: ChatBody['messages']): string {
  let prefix = ''
  for (const { role, content } of messages) {
    const text =
      typeof content === 'string' ? content : (content?.map((item) => item.text ?? '').join('') ?? '')
    prefix += `${role}:${text}\n`
    if (prefix.length >= PREFIX_CHARS) break
  }
  return prefix.slice(0, PREFIX_CHARS)
}
