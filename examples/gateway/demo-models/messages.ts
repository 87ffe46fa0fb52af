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

const MAX_OUTPUT_TOKENS = 16_384

const STOP_REASON: Readonly<Record<Finish, string>> = {
  stop: 'end_turn',
  length: 'max_tokens',
  tool: 'tool_use',
  filtered: 'refusal',
}

/** Serves `POST /v1/messages`. */
export const messages: TextEndpoint = { provider: 'anthropic', read, render }

function read(body: JsonObject): Prompt {
  if (body.max_tokens === undefined) {
    throw new Fault('invalid_request', { message: 'max_tokens: Field required', param: 'max_tokens' })
  }
  const { model, messages } = readConversation(body)
  const system = textOf(body.system)
  const tools = readTools(body.tools)
  const last = messages.at(-1)
  const results = objectsIn(last?.content).filter(({ type }) => type === 'tool_result')
  return {
    model,
    stream: body.stream === true,
    includeUsage: true,
    choices: 1,
    system,
    lastUserText: textOf(messages.findLast(({ role }) => role === 'user')?.content),
    toolResult: results.length > 0 ? results.map((result) => textOf(result.content)).join('\n') : undefined,
    tools,
    toolChoice: readToolChoice(asObject(body.tool_choice)),
    json: readFormat(body.output_config),
    maxOutputTokens: readCount(body, 'max_tokens', MAX_OUTPUT_TOKENS, MAX_OUTPUT_TOKENS),
    inputTokens: countInput(messages, system, tools),
  }
}

function readTools(value: unknown): Tool[] {
  return objectsIn(value).flatMap(({ name, input_schema: schema }) =>
    typeof name === 'string' ? [{ name, schema }] : [],
  )
}

function readToolChoice(choice: JsonObject | undefined): ToolChoice {
  if (choice?.type === 'none' || choice?.type === 'any') return choice.type
  return choice?.type === 'tool' && typeof choice.name === 'string' ? { name: choice.name } : 'auto'
}

function readFormat(outputConfig: unknown): Prompt['json'] {
  const format = asObject(asObject(outputConfig)?.format)
  return format?.type === 'json_schema' ? { schema: format.schema } : undefined
}

function render(prompt: Prompt, answers: readonly Answer[]): Rendering {
  const id = newId('msg_')
  const [answer] = answers
  if (answer === undefined) throw new TypeError('A message is rendered from one answer; there was none.')
  const written = answer.tokens.length
  const message = (content: readonly object[], ending: object, outputTokens: number) => ({
    id,
    type: 'message',
    role: 'assistant',
    model: prompt.model,
    content,
    ...ending,
    usage: {
      ...usage(prompt, outputTokens),
      cache_creation: { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 0 },
      service_tier: 'standard',
    },
  })

  return {
    body: () => message(contentOf(answer), endingOf(answer.finish), written),
    *opening() {
      // The counts of this first event are provisional: the true output is in message_delta, at the end.
      const running = { stop_reason: null, stop_sequence: null, stop_details: null }
      yield frame('message_start', { message: message([], running, Math.min(written, 1)) })
      if (written === 0) return
      yield frame('content_block_start', { index: 0, content_block: emptyBlock(answer) })
      yield frame('ping', {})
      for (const token of answer.tokens) {
        yield frame('content_block_delta', { index: 0, delta: tokenDelta(answer, token) })
      }
    },
    *closing() {
      if (written > 0) yield frame('content_block_stop', { index: 0 })
      yield frame('message_delta', { delta: endingOf(answer.finish), usage: usage(prompt, written) })
      yield frame('message_stop', {})
    },
  }
}

function frame(type: string, members: object): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...members })}\n\n`
}

function contentOf(answer: Answer): object[] {
  if (answer.tokens.length === 0) return []
  const written = answer.tokens.join('')
  if (answer.tool === undefined) return [{ type: 'text', text: written, citations: null }]
  // Arguments cut off by max_tokens are not JSON; a plain answer then has an empty input.
  const input: unknown = answer.finish === 'tool' ? JSON.parse(written) : {}
  return [{ type: 'tool_use', id: newId('toolu_'), name: answer.tool, input }]
}

function emptyBlock({ tool }: Answer): object {
  if (tool === undefined) return { type: 'text', text: '' }
  return { type: 'tool_use', id: newId('toolu_'), name: tool, input: {} }
}

function tokenDelta({ tool }: Answer, token: string): object {
  return tool === undefined
    ? { type: 'text_delta', text: token }
    : { type: 'input_json_delta', partial_json: token }
}

function endingOf(finish: Finish): object {
  const explanation = 'The demo model plays a refusal.'
  const details = finish === 'filtered' ? { type: 'refusal', category: null, explanation } : null
  return { stop_reason: STOP_REASON[finish], stop_sequence: null, stop_details: details }
}

function usage(prompt: Prompt, outputTokens: number): object {
  return {
    input_tokens: prompt.inputTokens,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: 0,
    output_tokens: outputTokens,
  }
}
