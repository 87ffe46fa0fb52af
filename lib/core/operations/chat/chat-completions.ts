import type { Feature } from '../../catalog/index.ts'
import { isJsonObject, type JsonObject, memberText, objectsIn } from '../../json/index.ts'
import { asksForUsage, meteredBody } from '../body/upstream-body.ts'
import {
  jsonText,
  TOKENS_PER_FILE,
  TOKENS_PER_IMAGE,
  TOKENS_PER_MESSAGE,
  TOKENS_PER_REQUEST,
} from '../metering/token-estimate.ts'
import { mostChatSearches } from '../metering/web-searches.ts'
import {
  featuresOf,
  PREFIX_CHARS,
  type RequestFacts,
  type StreamingOperation,
  type TokenEstimator,
} from '../operation.ts'
import { askedReasoning } from './asked-reasoning.ts'
import { readChoices } from './chat-answer.ts'
import { chatForm } from './chat-form.ts'
import { type ChatBody, chatSchema } from './chat-schema.ts'
import { ChatStreamReader } from './chat-stream.ts'

/** OpenAI-style chat completion: `POST /v1/chat/completions`. */
export const chatCompletions: StreamingOperation = {
  name: 'chat.completions',
  kind: 'chat',
  priceUnit: 'tokens',
  protocol: 'openai',
  path: '/v1/chat/completions',
  upstreamPath: '/chat/completions',
  schema: chatSchema,
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
  const featureParams = new Map<Feature, string>()
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
            if (!featureParams.has('vision')) featureParams.set('vision', `messages[${i}].content[${j}]`)
          } else if (typeof item.text === 'string') tokens += estimateTokens(item.text)
          else if (TOOL_PARTS.has(item.type)) tokens += estimateTokens(jsonText(item.input ?? item.content))
          else if (typeof item.refusal === 'string') tokens += estimateTokens(item.refusal)
          // Mistral's and Anthropic's models put their thoughts into the content.
          else if (item.type === 'thinking') tokens += estimateTokens(jsonText(item.thinking))
          else tokens += TOKENS_PER_FILE
        }
      }
    }
    if (calls) for (const call of calls) tokens += estimateTokens(callText(call))
  }
  const tools = body.tools?.length || body.functions?.length || 0
  if (tools > 0) featureParams.set('tools', body.tools?.length ? 'tools' : 'functions')
  for (const member of COUNTED_AS_WRITTEN) {
    if (body[member]) tokens += estimateTokens(memberText(raw, member) ?? '')
  }
  // The upstream treats other formats as a parameter; it writes this one into the prompt.
  if (body.response_format?.type === 'json_schema')
    tokens += estimateTokens(memberText(raw, 'response_format') ?? '')
  if (body.stream === true) featureParams.set('stream', 'stream')
  if (body.response_format && body.response_format.type !== 'text')
    featureParams.set('json', 'response_format')
  if (body.reasoning_effort || body.reasoning || body.thinking) {
    const { param, effort } = askedReasoning(body) ?? {}
    if (param && effort !== 'none') featureParams.set('reasoning', param)
  }
  return {
    model: body.model,
    stream: body.stream === true,
    features: featuresOf(featureParams),
    featureParams,
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

/** Returns name and arguments of an earlier tool call, or the input of a freeform tool, which are part of the prompt. */
function callText(call: JsonObject): string {
  const called = call.function ?? call.custom
  if (!isJsonObject(called)) return ''
  return `${typeof called.name === 'string' ? called.name : ''} ${jsonText(called.arguments ?? called.input)}`
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
