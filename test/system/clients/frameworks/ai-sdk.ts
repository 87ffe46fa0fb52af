import { createAnthropic } from '@ai-sdk/anthropic'
import { createOpenAI } from '@ai-sdk/openai'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { createOpenRouter } from '@openrouter/ai-sdk-provider'
import {
  generateText,
  isStepCount,
  type LanguageModel,
  type ModelMessage,
  Output,
  streamText,
  tool,
} from 'ai'
import { FORM, NO_INPUT, SYSTEM, WEATHER_INPUT } from '../scenarios.ts'
import { type Ask, CLAUDE, type Framework, GPT, type Place, type Reply } from './framework.ts'
import { runTool } from './tools.ts'

const TOOLS = {
  weather: tool({
    description: 'The weather in a city.',
    inputSchema: WEATHER_INPUT,
    execute: (input) => runTool('weather', input),
  }),
  clock: tool({
    description: 'The time.',
    inputSchema: NO_INPUT,
    execute: (input) => runTool('clock', input),
  }),
}

globalThis.AI_SDK_LOG_WARNINGS = false

/** The setting of the OpenAI provider that keeps nothing at the provider. */
const NOT_STORED = { openai: { store: false } }

async function run(model: LanguageModel, ask: Ask, { isSet }: Place): Promise<Reply> {
  const { file, questions } = ask
  const [first, ...further] = questions as [string, ...string[]]
  const content = [
    { type: 'text' as const, text: first },
    ...(file ? [{ type: 'file' as const, data: file.bytes, mediaType: file.type, filename: 'a' }] : []),
  ]
  const messages: ModelMessage[] = [{ role: 'user', content }]
  const call = {
    model,
    instructions: SYSTEM,
    messages,
    maxRetries: 0,
    ...(ask.thinks && { reasoning: 'medium' as const }),
    ...(ask.tools && { tools: TOOLS, stopWhen: isStepCount(5) }),
    ...(ask.form && { output: Output.object({ schema: FORM }) }),
    ...(isSet && { providerOptions: NOT_STORED }),
  }
  for (;;) {
    const failures: unknown[] = []
    const streaming =
      ask.streamed && streamText({ ...call, onError: ({ error }) => void failures.push(error) })
    const answer = streaming || (await generateText(call))
    let pieces = 0
    if (streaming) for await (const _ of streaming.textStream) pieces++
    if (failures.length > 0) throw failures[0]
    messages.push(...(await answer.responseMessages))
    const question = further.shift()
    if (question === undefined)
      return { text: await answer.text, pieces, form: ask.form && (await answer.output) }
    messages.push({ role: 'user', content: question })
  }
}

const openai = ({ url, apiKey, headers }: Place) => createOpenAI({ baseURL: `${url}/v1`, apiKey, headers })
const anthropic = ({ url, apiKey, headers }: Place) =>
  createAnthropic({ baseURL: `${url}/v1`, apiKey, headers })
const compatible = ({ url, apiKey, headers, isSet }: Place) =>
  createOpenAICompatible({
    name: 'gateway',
    baseURL: `${url}/v1`,
    apiKey,
    headers,
    includeUsage: true,
    supportsStructuredOutputs: isSet,
  })

const openRouter = ({ url, apiKey, headers }: Place) =>
  createOpenRouter({ baseURL: `${url}/v1`, apiKey, headers })

const framework = (
  name: string,
  speaks: Framework['speaks'],
  model: string,
  of: (place: Place) => LanguageModel,
): Framework => ({ name, speaks, model, ask: (ask, place) => run(of(place), ask, place) })

export const AI_SDK: readonly Framework[] = [
  framework('@ai-sdk/openai', 'responses', GPT, (place) => openai(place)(place.model)),
  framework('@ai-sdk/openai `.chat`', 'chat', GPT, (place) => openai(place).chat(place.model)),
  framework('@ai-sdk/anthropic', 'messages', CLAUDE, (place) => anthropic(place)(place.model)),
  framework('@ai-sdk/openai-compatible', 'chat', GPT, (place) => compatible(place)(place.model)),
  framework('@openrouter/ai-sdk-provider', 'chat', GPT, (place) => openRouter(place).chat(place.model)),
]
