import {
  Agent,
  type AgentInputItem,
  type Model,
  OpenAIChatCompletionsModel,
  OpenAIResponsesModel,
  Runner,
  setTracingDisabled,
  tool,
} from '@openai/agents'
import OpenAI from 'openai'
import { FORM, NO_INPUT, SYSTEM, WEATHER_INPUT } from '../scenarios.ts'
import { type Ask, dataUrl, type Framework, GPT, type Place, type Reply } from './framework.ts'
import { runTool } from './tools.ts'

setTracingDisabled(true)

const TOOLS = [
  tool({
    name: 'weather',
    description: 'The weather in a city.',
    parameters: WEATHER_INPUT,
    execute: (input) => runTool('weather', input),
    errorFunction: null,
  }),
  tool({
    name: 'clock',
    description: 'The time.',
    parameters: NO_INPUT,
    execute: (input) => runTool('clock', input),
    errorFunction: null,
  }),
]

async function runAgent(model: Model, ask: Ask, { isSet }: Place): Promise<Reply> {
  const agent = new Agent({
    name: 'Terse',
    instructions: SYSTEM,
    model,
    tools: ask.tools ? TOOLS : [],
    modelSettings: {
      ...(ask.thinks && { reasoning: { effort: 'medium' } }),
      ...(isSet && { store: false, providerData: { include: ['reasoning.encrypted_content'] } }),
    },
    ...(ask.form && { outputType: FORM }),
  })
  const { file, questions } = ask
  const [first, ...further] = questions as [string, ...string[]]
  let input: AgentInputItem[] = [
    {
      role: 'user',
      content: [
        { type: 'input_text', text: first },
        ...(file?.type === 'image/png' ? [{ type: 'input_image' as const, image: dataUrl(file) }] : []),
        ...(file?.type === 'application/pdf'
          ? [{ type: 'input_file' as const, file: dataUrl(file), filename: 'a.pdf' }]
          : []),
      ],
    },
  ]
  const runner = new Runner({ tracingDisabled: true })
  for (;;) {
    const streaming = ask.streamed && (await runner.run(agent, input, { stream: true }))
    let pieces = 0
    if (streaming) for await (const _ of streaming.toTextStream()) pieces++
    if (streaming) await streaming.completed
    const { history, finalOutput } = streaming || (await runner.run(agent, input))
    const question = further.shift()
    if (question === undefined) return { text: String(finalOutput), pieces, form: finalOutput }
    input = [...history, { role: 'user', content: question }]
  }
}

const clientOf = ({ url, apiKey, headers }: Place) =>
  new OpenAI({ baseURL: `${url}/v1`, apiKey, defaultHeaders: headers, maxRetries: 0 })

export const AGENTS: readonly Framework[] = [
  {
    name: '@openai/agents',
    speaks: 'responses',
    model: GPT,
    ask: (ask, place) => runAgent(new OpenAIResponsesModel(clientOf(place), place.model), ask, place),
  },
  {
    name: '@openai/agents',
    speaks: 'chat',
    model: GPT,
    ask: (ask, place) => runAgent(new OpenAIChatCompletionsModel(clientOf(place), place.model), ask, place),
  },
]
