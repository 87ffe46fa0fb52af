import assert from 'node:assert/strict'
import { ChatAnthropic } from '@langchain/anthropic'
import type { BaseMessage } from '@langchain/core/messages'
import { type AIMessageChunk, HumanMessage, SystemMessage, ToolMessage } from '@langchain/core/messages'
import { ChatOpenAI } from '@langchain/openai'
import { FORM, SYSTEM } from '../scenarios.ts'
import { type Ask, CLAUDE, type Framework, GPT, MAX_TOKENS, type Place, type Reply } from './framework.ts'
import { runTool, TOOLS } from './tools.ts'

const FUNCTIONS = TOOLS.map((tool) => ({ type: 'function' as const, function: tool }))

function openai(useResponsesApi: boolean) {
  return ({ thinks }: Ask, { url, apiKey, headers, model, isSet }: Place) =>
    new ChatOpenAI({
      model,
      apiKey,
      useResponsesApi,
      maxRetries: 0,
      configuration: { baseURL: `${url}/v1`, defaultHeaders: headers },
      ...(thinks && { reasoning: { effort: 'medium' as const } }),
      ...(isSet && { zdrEnabled: true }),
    })
}

const anthropic = ({ thinks }: Ask, { url, apiKey, headers, model }: Place) =>
  new ChatAnthropic({
    model,
    apiKey,
    maxTokens: MAX_TOKENS,
    maxRetries: 0,
    anthropicApiUrl: url,
    clientOptions: { defaultHeaders: headers },
    ...(thinks && { thinking: { type: 'enabled' as const, budget_tokens: 2000 } }),
  })

async function run(chat: ChatOpenAI | ChatAnthropic, ask: Ask): Promise<Reply> {
  const { file, questions } = ask
  const [first, ...further] = questions as [string, ...string[]]
  const data = file?.bytes.toString('base64')
  const messages: BaseMessage[] = [
    new SystemMessage(SYSTEM),
    new HumanMessage({
      contentBlocks: [
        { type: 'text', text: first },
        ...(file?.type === 'image/png'
          ? [{ type: 'image' as const, mimeType: file.type, data: data as string }]
          : []),
        ...(file?.type === 'application/pdf'
          ? [
              {
                type: 'file' as const,
                mimeType: file.type,
                data: data as string,
                metadata: { filename: 'a.pdf' },
              },
            ]
          : []),
      ],
    }),
  ]
  if (ask.form) return { text: '', pieces: 1, form: await chat.withStructuredOutput(FORM).invoke(messages) }
  const bound = ask.tools ? chat.bindTools(FUNCTIONS) : chat
  for (;;) {
    let pieces = 0
    let answer: AIMessageChunk | undefined
    if (ask.streamed)
      for await (const chunk of await bound.stream(messages)) {
        if (chunk.text) pieces++
        answer = answer ? answer.concat(chunk) : (chunk as AIMessageChunk)
      }
    else answer = (await bound.invoke(messages)) as AIMessageChunk
    assert.ok(answer)
    messages.push(answer)
    if (!answer.tool_calls?.length) {
      const question = further.shift()
      if (question === undefined) return { text: answer.text, pieces }
      messages.push(new HumanMessage(question))
    }
    for (const { id = '', name, args } of answer.tool_calls ?? [])
      messages.push(new ToolMessage({ tool_call_id: id, content: runTool(name, args) }))
  }
}

export const LANGCHAIN: readonly Framework[] = [
  {
    name: '@langchain/openai',
    speaks: 'chat',
    model: GPT,
    ask: (ask, place) => run(openai(false)(ask, place), ask),
  },
  {
    name: '@langchain/openai `useResponsesApi`',
    speaks: 'responses',
    model: GPT,
    ask: (ask, place) => run(openai(true)(ask, place), ask),
  },
  {
    name: '@langchain/anthropic',
    speaks: 'messages',
    model: CLAUDE,
    ask: (ask, place) => run(anthropic(ask, place), ask),
  },
]
