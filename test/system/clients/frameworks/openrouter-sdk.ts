import { OpenRouter } from '@openrouter/sdk'
import type { ChatAssistantMessage, ChatMessages, ChatRequest, ChatResult } from '@openrouter/sdk/models'
import { z } from 'zod'
import { FORM, SYSTEM } from '../scenarios.ts'
import { type Ask, dataUrl, type Framework, GPT, type Place, type Reply } from './framework.ts'
import { runTool, TOOLS } from './tools.ts'

type Assistant = Omit<ChatAssistantMessage, 'role'>

async function chat(ask: Ask, { url, apiKey, headers, model }: Place): Promise<Reply> {
  const client = new OpenRouter({ apiKey, serverURL: `${url}/v1`, retryConfig: { strategy: 'none' } })
  const [first, ...further] = ask.questions as [string, ...string[]]
  const messages: ChatMessages[] = [
    { role: 'system', content: SYSTEM },
    { role: 'user', content: [{ type: 'text', text: first }, ...partsOf(ask)] },
  ]
  const request: ChatRequest = {
    model,
    messages,
    ...(ask.thinks && { reasoning: { effort: 'medium' as const } }),
    ...(ask.form && {
      responseFormat: {
        type: 'json_schema' as const,
        jsonSchema: { name: 'form', schema: z.toJSONSchema(FORM), strict: true },
      },
    }),
    ...(ask.tools && { tools: TOOLS.map((tool) => ({ type: 'function' as const, function: tool })) }),
  }
  for (;;) {
    const { message, pieces } = await send(client, request, ask.streamed, headers)
    messages.push({ ...message, role: 'assistant' })
    const text = String(message.content ?? '')
    const calls = message.toolCalls ?? []
    if (calls.length === 0) {
      const question = further.shift()
      if (question === undefined) return { text, pieces, form: ask.form && JSON.parse(text) }
      messages.push({ role: 'user', content: question })
    }
    for (const { id, function: called } of calls)
      messages.push({
        role: 'tool',
        toolCallId: id,
        content: runTool(called.name, JSON.parse(called.arguments)),
      })
  }
}

function partsOf({ file }: Ask) {
  if (!file) return []
  return file.type === 'image/png'
    ? [{ type: 'image_url' as const, imageUrl: { url: dataUrl(file) } }]
    : [{ type: 'file' as const, file: { filename: 'a.pdf', fileData: dataUrl(file) } }]
}

async function send(
  client: OpenRouter,
  request: ChatRequest,
  streamed: boolean,
  headers: Record<string, string>,
): Promise<{ message: Assistant; pieces: number }> {
  const answer = await client.chat.send({ chatRequest: { ...request, stream: streamed } }, { headers })
  if (!streamed) return { message: (answer as ChatResult).choices[0]?.message as Assistant, pieces: 1 }
  const message = { content: '', toolCalls: [] as NonNullable<Assistant['toolCalls']> }
  const reasoningDetails: NonNullable<Assistant['reasoningDetails']> = []
  let pieces = 0
  for await (const { choices, error } of answer as Exclude<typeof answer, ChatResult>) {
    if (error) throw new Error(error.message)
    const delta = choices[0]?.delta
    if (delta?.content) pieces++
    message.content += delta?.content ?? ''
    reasoningDetails.push(...(delta?.reasoningDetails ?? []))
    for (const { index, id = '', function: part } of delta?.toolCalls ?? []) {
      message.toolCalls[index] ??= { id, type: 'function', function: { name: '', arguments: '' } }
      const { function: called } = message.toolCalls[index] as {
        function: { name: string; arguments: string }
      }
      called.name += part?.name ?? ''
      called.arguments += part?.arguments ?? ''
    }
  }
  const hasCalls = message.toolCalls.length > 0
  return {
    message: {
      content: message.content,
      ...(hasCalls && { toolCalls: message.toolCalls }),
      ...(reasoningDetails.length > 0 && { reasoningDetails }),
    },
    pieces,
  }
}

export const OPENROUTER: readonly Framework[] = [
  { name: '@openrouter/sdk', speaks: 'chat', model: GPT, ask: chat },
]
