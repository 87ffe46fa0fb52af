import type { Answer, Finish } from './answer.ts'
import { Fault } from './faults.ts'
import {
  asObject,
  countInput,
  type JsonObject,
  objectsIn,
  type Prompt,
  readCount,
  readText,
  type Tool,
  type ToolChoice,
  textOf,
} from './prompt.ts'
import { responseEvents } from './responses-events.ts'
import type { StoredResponses } from './stored-responses.ts'
import { newId, type Rendering, type TextEndpoint } from './text-endpoint.ts'

const MAX_OUTPUT_TOKENS = 16_384

const INCOMPLETE_REASON: Readonly<Partial<Record<Finish, string>>> = {
  length: 'max_output_tokens',
  filtered: 'content_filter',
}

/** Serves `POST /v1/responses`. Responses are stored unless the request has `"store": false`. */
export function responses(stored: StoredResponses): TextEndpoint {
  return {
    provider: 'openai',
    read: (body) => read(body, stored),
    render: (prompt, answers) => render(prompt, answers, stored),
  }
}

function read(body: JsonObject, stored: StoredResponses): Prompt {
  const model = readText(body, 'model')
  const previousId = typeof body.previous_response_id === 'string' ? body.previous_response_id : null
  const before = previousId === null ? [] : stored.conversationOf(previousId)
  const input =
    typeof body.input === 'string' ? [{ role: 'user', content: body.input }] : objectsIn(body.input)
  if (input.length === 0 && previousId === null) {
    throw new Fault('invalid_request', { message: 'input: something to answer is required.', param: 'input' })
  }
  const items = [...before, ...input]
  const instructions = textOf(body.instructions)
  const systemItems = items.filter(({ role }) => role === 'system' || role === 'developer')
  const tools = readTools(body.tools)
  const last = items.at(-1)
  return {
    model,
    stream: body.stream === true,
    includeUsage: true,
    choices: 1,
    system: [instructions, ...systemItems.map(({ content }) => textOf(content))].filter(Boolean).join('\n'),
    lastUserText: textOf(items.findLast(({ role }) => role === 'user')?.content),
    toolResult: last?.type === 'function_call_output' ? textOf(last.output) : undefined,
    tools,
    toolChoice: readToolChoice(body.tool_choice),
    json: readFormat(body.text),
    maxOutputTokens: readCount(body, 'max_output_tokens', MAX_OUTPUT_TOKENS, MAX_OUTPUT_TOKENS),
    inputTokens: countInput(items.map(asMessage), instructions, tools),
    response: { previousId, stored: body.store !== false, input, before },
  }
}

/** Returns an item as a message, for counting its tokens. */
function asMessage(item: JsonObject): JsonObject {
  if (item.type === 'function_call') return { content: `${item.name} ${item.arguments}` }
  return item.type === 'function_call_output' ? { content: item.output } : item
}

function readTools(value: unknown): Tool[] {
  return objectsIn(value).flatMap(({ type, name, parameters }) =>
    type === 'function' && typeof name === 'string' ? [{ name, schema: parameters }] : [],
  )
}

function readToolChoice(value: unknown): ToolChoice {
  if (value === 'none') return 'none'
  if (value === 'required') return 'any'
  const name = asObject(value)?.name
  return typeof name === 'string' ? { name } : 'auto'
}

function readFormat(text: unknown): Prompt['json'] {
  const format = asObject(asObject(text)?.format)
  if (format?.type === 'json_object') return 'object'
  return format?.type === 'json_schema' ? { schema: format.schema } : undefined
}

function render(prompt: Prompt, answers: readonly Answer[], stored: StoredResponses): Rendering {
  const [answer] = answers
  const { response: asked } = prompt
  if (answer === undefined || asked === undefined) {
    throw new TypeError('A response is rendered from one answer to a request for one.')
  }
  const id = newId('resp_')
  const output = outputOf(answer)
  const reason = INCOMPLETE_REASON[answer.finish]
  const begun = {
    id,
    object: 'response',
    created_at: Math.floor(Date.now() / 1000),
    status: 'in_progress',
    background: false,
    error: null,
    incomplete_details: null,
    model: prompt.model,
    output: [] as readonly JsonObject[],
    previous_response_id: asked.previousId,
    store: asked.stored,
    tools: [],
    usage: null as object | null,
    metadata: {},
  }
  const whole = {
    ...begun,
    status: reason === undefined ? 'completed' : 'incomplete',
    incomplete_details: reason === undefined ? null : { reason },
    output,
    usage: usage(prompt, answer),
  }
  const keep = (): void => {
    const conversation = [...asked.before, ...asked.input, ...output]
    if (asked.stored) stored.add(id, { response: whole, input: asked.input, conversation })
  }
  const events = responseEvents(begun, whole, answer.tokens)
  return {
    body() {
      keep()
      return whole
    },
    *opening() {
      // From its first event on the caller knows the id.
      keep()
      yield* events.opening()
    },
    closing: events.closing,
  }
}

function outputOf({ tokens, tool }: Answer): readonly JsonObject[] {
  if (tokens.length === 0) return []
  const written = tokens.join('')
  const status = 'completed'
  if (tool !== undefined) {
    const call = { id: newId('fc_'), type: 'function_call', status, call_id: newId('call_') }
    return [{ ...call, name: tool, arguments: written }]
  }
  const content = [{ type: 'output_text', text: written, annotations: [], logprobs: [] }]
  return [{ id: newId('msg_'), type: 'message', status, role: 'assistant', content }]
}

function usage({ inputTokens }: Prompt, { tokens }: Answer): object {
  return {
    input_tokens: inputTokens,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens: tokens.length,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: inputTokens + tokens.length,
  }
}
