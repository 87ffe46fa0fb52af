import assert from 'node:assert/strict'
import OpenAI from 'openai'
import { zodResponseFormat, zodTextFormat } from 'openai/helpers/zod'
import type { ParsedChatCompletionMessage } from 'openai/resources/chat/completions'
import type { ParsedResponse } from 'openai/resources/responses/responses'
import { FORM, SYSTEM } from '../scenarios.ts'
import { type Ask, dataUrl, type Framework, GPT, type Place, type Reply } from './framework.ts'
import { runTool, TOOLS } from './tools.ts'

const clientOf = ({ url, apiKey, headers }: Place) =>
  new OpenAI({ baseURL: `${url}/v1`, apiKey, defaultHeaders: headers, maxRetries: 0 })

async function chat(ask: Ask, place: Place): Promise<Reply> {
  const { completions } = clientOf(place).chat
  const [first, ...further] = ask.questions as [string, ...string[]]
  const content: OpenAI.ChatCompletionContentPart[] = [{ type: 'text', text: first }]
  if (ask.file?.type === 'image/png')
    content.push({ type: 'image_url', image_url: { url: dataUrl(ask.file) } })
  if (ask.file?.type === 'application/pdf')
    content.push({ type: 'file', file: { filename: 'a.pdf', file_data: dataUrl(ask.file) } })
  const messages: OpenAI.ChatCompletionMessageParam[] = [
    { role: 'system', content: SYSTEM },
    { role: 'user', content },
  ]
  const body = {
    model: place.model,
    messages,
    ...(ask.thinks && { reasoning_effort: 'medium' as const }),
    ...(ask.form && { response_format: zodResponseFormat(FORM, 'form') }),
    ...(ask.tools && {
      tools: TOOLS.map((tool) => ({ type: 'function' as const, function: tool })),
    }),
  }
  for (;;) {
    let pieces = 0
    const streaming = ask.streamed && completions.stream(body).on('content', () => pieces++)
    const plain = () => (ask.form ? completions.parse(body) : completions.create(body))
    const answer = await (streaming ? streaming.finalChatCompletion() : plain())
    const message = answer.choices[0]?.message as ParsedChatCompletionMessage<unknown>
    messages.push(message)
    if (!message.tool_calls?.length) {
      const question = further.shift()
      if (question === undefined) return { text: message.content ?? '', pieces, form: message.parsed }
      messages.push({ role: 'user', content: question })
    }
    for (const call of message.tool_calls ?? []) {
      if (call.type !== 'function') throw new Error('another kind of tool')
      const { name, arguments: args } = call.function
      messages.push({ role: 'tool', tool_call_id: call.id, content: runTool(name, JSON.parse(args)) })
    }
  }
}

async function responses(ask: Ask, place: Place): Promise<Reply> {
  const client = clientOf(place)
  const [first, ...further] = ask.questions as [string, ...string[]]
  const content: OpenAI.Responses.ResponseInputContent[] = [{ type: 'input_text', text: first }]
  if (ask.file?.type === 'image/png')
    content.push({ type: 'input_image', image_url: dataUrl(ask.file), detail: 'auto' })
  if (ask.file?.type === 'application/pdf')
    content.push({ type: 'input_file', filename: 'a.pdf', file_data: dataUrl(ask.file) })
  const input: OpenAI.Responses.ResponseInput = [{ role: 'user', content }]
  const body = {
    model: place.model,
    instructions: SYSTEM,
    input,
    ...(ask.thinks && {
      reasoning: { effort: 'medium' as const, summary: 'auto' as const },
      store: false,
      include: ['reasoning.encrypted_content' as const],
    }),
    ...(ask.form && { text: { format: zodTextFormat(FORM, 'form') } }),
    ...(ask.tools && { tools: TOOLS.map((tool) => ({ type: 'function' as const, ...tool, strict: false })) }),
  }
  for (;;) {
    let pieces = 0
    let answer: OpenAI.Responses.Response | undefined
    if (ask.streamed)
      for await (const event of await client.responses.create({ ...body, stream: true })) {
        if (event.type === 'response.output_text.delta') pieces++
        if (event.type === 'response.completed') answer = event.response
      }
    else answer = await (ask.form ? client.responses.parse(body) : client.responses.create(body))
    assert.ok(answer)
    input.push(...(answer.output as OpenAI.Responses.ResponseInput))
    const calls = answer.output.filter((item) => item.type === 'function_call')
    if (calls.length === 0) {
      const question = further.shift()
      const { output_parsed: form } = answer as ParsedResponse<unknown>
      if (question === undefined) return { text: textOf(answer), pieces, form }
      input.push({ role: 'user', content: question })
    }
    for (const { name, arguments: args, call_id } of calls)
      input.push({ type: 'function_call_output', call_id, output: runTool(name, JSON.parse(args)) })
  }
}

/** Streamed responses have no text of their own. */
const textOf = ({ output }: OpenAI.Responses.Response): string =>
  output
    .flatMap((item) => (item.type === 'message' ? item.content : []))
    .map((part) => (part.type === 'output_text' ? part.text : ''))
    .join('')

export const OPENAI: readonly Framework[] = [
  { name: 'openai', speaks: 'chat', model: GPT, ask: chat },
  { name: 'openai', speaks: 'responses', model: GPT, ask: responses },
]
