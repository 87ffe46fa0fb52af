import Groq from 'groq-sdk'
import type { ChatCompletionCreateParamsNonStreaming } from 'groq-sdk/resources/chat/completions'
import { z } from 'zod'
import { FORM, SYSTEM } from '../scenarios.ts'
import { type Ask, dataUrl, type Framework, GPT, type Place, type Reply } from './framework.ts'
import { runTool, TOOLS } from './tools.ts'

type Assistant = Groq.Chat.ChatCompletionAssistantMessageParam

async function chat(ask: Ask, { url, apiKey, headers, model }: Place): Promise<Reply> {
  const client = new Groq({ baseURL: url, apiKey, defaultHeaders: headers, maxRetries: 0 })
  const [first, ...further] = ask.questions as [string, ...string[]]
  const content: Groq.Chat.ChatCompletionContentPart[] = [{ type: 'text', text: first }]
  if (ask.file) content.push({ type: 'image_url', image_url: { url: dataUrl(ask.file) } })
  const messages: Groq.Chat.ChatCompletionMessageParam[] = [
    { role: 'system', content: SYSTEM },
    { role: 'user', content },
  ]
  const body = {
    model,
    messages,
    ...(ask.thinks && { reasoning_effort: 'medium' as const }),
    ...(ask.form && {
      response_format: {
        type: 'json_schema' as const,
        json_schema: { name: 'form', schema: z.toJSONSchema(FORM), strict: true },
      },
    }),
    ...(ask.tools && { tools: TOOLS.map((tool) => ({ type: 'function' as const, function: tool })) }),
  }
  for (;;) {
    const { message, pieces } = await send(client, body, ask.streamed)
    messages.push(message)
    const text = String(message.content ?? '')
    if (!message.tool_calls?.length) {
      const question = further.shift()
      if (question === undefined) return { text, pieces, form: ask.form && JSON.parse(text) }
      messages.push({ role: 'user', content: question })
    }
    for (const { id, function: called } of message.tool_calls ?? [])
      messages.push({
        role: 'tool',
        tool_call_id: id,
        content: runTool(called.name, JSON.parse(called.arguments)),
      })
  }
}

async function send(
  client: Groq,
  body: ChatCompletionCreateParamsNonStreaming,
  streamed: boolean,
): Promise<{ message: Assistant; pieces: number }> {
  if (!streamed) {
    const { choices } = await client.chat.completions.create(body)
    return { message: choices[0]?.message as Assistant, pieces: 1 }
  }
  let content = ''
  let pieces = 0
  const calls: Groq.Chat.ChatCompletionMessageToolCall[] = []
  for await (const { choices } of await client.chat.completions.create({ ...body, stream: true })) {
    const delta = choices[0]?.delta
    if (delta?.content) pieces++
    content += delta?.content ?? ''
    for (const { index, id = '', function: part } of delta?.tool_calls ?? []) {
      calls[index] ??= { id, type: 'function', function: { name: '', arguments: '' } }
      const { function: called } = calls[index] as Groq.Chat.ChatCompletionMessageToolCall
      called.name += part?.name ?? ''
      called.arguments += part?.arguments ?? ''
    }
  }
  return { message: { role: 'assistant', content, ...(calls.length > 0 && { tool_calls: calls }) }, pieces }
}

export const GROQ: readonly Framework[] = [
  // It has no files beside images.
  { name: 'groq-sdk', speaks: 'chat', model: GPT, cannot: ['pdf'], ask: chat },
]
