import type { Answer, Finish } from './answer.ts'
import { Fault } from './faults.ts'
import {
  asObject,
  countInput,
  type JsonObject,
  objectsIn,
  type Prompt,
  readConversation,
  readCount,
  type Tool,
  type ToolChoice,
  textOf,
} from './prompt.ts'
import { newId, type Rendering, type TextEndpoint } from './text-endpoint.ts'

const MAX_CHOICES = 8
const MAX_OUTPUT_TOKENS = 16_384

const FINISH_REASON: Readonly<Record<Finish, string>> = {
  stop: 'stop',
  length: 'length',
  tool: 'tool_calls',
  filtered: 'content_filter',
}

/** Serves `POST /v1/chat/completions`. */
export const chatCompletions: TextEndpoint = { provider: 'openai', read, render }

function read(body: JsonObject): Prompt {
  const { model, messages } = readConversation(body)
  const stream = body.stream === true
  const streamOptions = asObject(body.stream_options)
  if (streamOptions !== undefined && !stream) {
    const message = 'stream_options: only allowed when stream is true.'
    throw new Fault('invalid_request', { message, param: 'stream_options' })
  }
  const last = messages.at(-1)
  const system = messages.filter(({ role }) => role === 'system' || role === 'developer')
  const tools = readTools(body.tools)
  return {
    model,
    stream,
    includeUsage: streamOptions?.include_usage === true,
    choices: readCount(body, 'n', 1, MAX_CHOICES),
    system: system.map(({ content }) => textOf(content)).join('\n'),
    lastUserText: textOf(messages.findLast(({ role }) => role === 'user')?.content),
    toolResult: last?.role === 'tool' ? textOf(last.content) : undefined,
    tools,
    toolChoice: readToolChoice(body.tool_choice),
    json: readFormat(body.response_format),
    maxOutputTokens: readCount(
      body,
      body.max_completion_tokens == null ? 'max_tokens' : 'max_completion_tokens',
      MAX_OUTPUT_TOKENS,
      MAX_OUTPUT_TOKENS,
    ),
    // System messages are among the messages here, so that they are counted there.
    inputTokens: countInput(messages, '', tools),
  }
}

function readTools(value: unknown): Tool[] {
  return objectsIn(value).flatMap((tool) => {
    const { name, parameters } = asObject(tool.function) ?? {}
    return typeof name === 'string' ? [{ name, schema: parameters }] : []
  })
}

function readToolChoice(value: unknown): ToolChoice {
  if (value === 'none') return 'none'
  if (value === 'required') return 'any'
  const name = asObject(asObject(value)?.function)?.name
  return typeof name === 'string' ? { name } : 'auto'
}

function readFormat(value: unknown): Prompt['json'] {
  const format = asObject(value)
  if (format?.type === 'json_object') return 'object'
  if (format?.type === 'json_schema') return { schema: asObject(format.json_schema)?.schema }
  return undefined
}

function render(prompt: Prompt, answers: readonly Answer[]): Rendering {
  const id = newId('chatcmpl-')
  const created = Math.floor(Date.now() / 1000)
  const envelope = (object: string) => ({
    id,
    object,
    created,
    model: prompt.model,
    service_tier: 'default',
    system_fingerprint: 'fp_demo',
  })

  const frame = (choices: readonly object[], usage: object | null = null): string => {
    const chunk = { ...envelope('chat.completion.chunk'), choices, ...(prompt.includeUsage && { usage }) }
    return `data: ${JSON.stringify(chunk)}\n\n`
  }
  const delta = (index: number, change: object, finishReason: string | null = null): string =>
    frame([{ index, delta: change, logprobs: null, finish_reason: finishReason }])

  return {
    body: () => ({
      ...envelope('chat.completion'),
      choices: answers.map((answer, index) => ({
        index,
        message: message(answer),
        logprobs: null,
        finish_reason: FINISH_REASON[answer.finish],
      })),
      usage: usage(prompt, answers),
    }),
    *opening() {
      for (const [index, answer] of answers.entries()) yield delta(index, firstDelta(answer))
      const longest = Math.max(...answers.map(({ tokens }) => tokens.length))
      for (let at = 0; at < longest; at++) {
        for (const [index, answer] of answers.entries()) {
          const token = answer.tokens[at]
          if (token !== undefined) yield delta(index, tokenDelta(answer, token))
        }
      }
    },
    *closing() {
      for (const [index, { finish }] of answers.entries()) yield delta(index, {}, FINISH_REASON[finish])
      if (prompt.includeUsage) yield frame([], usage(prompt, answers))
      yield 'data: [DONE]\n\n'
    },
  }
}

function message(answer: Answer): object {
  const written = answer.tokens.join('')
  const shared = { role: 'assistant', refusal: null, annotations: [] }
  if (answer.tool === undefined) return { ...shared, content: answer.finish === 'filtered' ? null : written }
  return { ...shared, content: null, tool_calls: [toolCall(answer.tool, written)] }
}

function toolCall(name: string, written: string): object {
  return { id: newId('call_'), type: 'function', function: { name, arguments: written } }
}

function firstDelta({ tool }: Answer): object {
  if (tool === undefined) return { role: 'assistant', content: '', refusal: null }
  return { role: 'assistant', content: null, tool_calls: [{ index: 0, ...toolCall(tool, '') }] }
}

function tokenDelta({ tool }: Answer, token: string): object {
  if (tool === undefined) return { content: token }
  return { tool_calls: [{ index: 0, function: { arguments: token } }] }
}

function usage(prompt: Prompt, answers: readonly Answer[]): object {
  const written = answers.reduce((tokens, answer) => tokens + answer.tokens.length, 0)
  return {
    prompt_tokens: prompt.inputTokens,
    completion_tokens: written,
    total_tokens: prompt.inputTokens + written,
    prompt_tokens_details: { cached_tokens: 0, audio_tokens: 0 },
    completion_tokens_details: {
      reasoning_tokens: 0,
      audio_tokens: 0,
      accepted_prediction_tokens: 0,
      rejected_prediction_tokens: 0,
    },
  }
}
