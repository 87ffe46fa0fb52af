import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import type { DemoModels, DemoModelsOptions } from '../../../examples/gateway/demo-models/server.ts'
import { startDemoModels } from '../../../examples/gateway/demo-models/server.ts'

/** An OpenAI client of a demo model server that never retries by itself. */
export const openaiFor = (url: string, apiKey = 'sk-demo') =>
  new OpenAI({ baseURL: `${url}/v1`, apiKey, maxRetries: 0 })

/** An Anthropic client of a demo model server that never retries by itself. */
export const anthropicFor = (url: string, apiKey = 'sk-demo') =>
  new Anthropic({ baseURL: url, apiKey, maxRetries: 0 })

/** Runs with a demo model server of its own, without pace, and closes it. */
export async function withServer(
  options: DemoModelsOptions,
  run: (demo: DemoModels) => Promise<void>,
): Promise<void> {
  const own = await startDemoModels({ paceMs: 0, ...options })
  try {
    await run(own)
  } finally {
    await own.close()
  }
}

/** A conversation of one message. */
export const user = (content: string) => [{ role: 'user' as const, content }]

/** The four ways to ask a model something: either protocol, plain or streamed. */
export function callsTo(url: string) {
  const { completions } = openaiFor(url).chat
  const { messages } = anthropicFor(url)
  const asked = { messages: user('How are you?'), max_tokens: 200 }
  return {
    chat: (model: string) => completions.create({ model, ...asked }),
    chatStream: (model: string) => completions.create({ model, ...asked, stream: true }),
    message: (model: string) => messages.create({ model, ...asked }),
    messageStream: (model: string) => messages.create({ model, ...asked, stream: true }),
  }
}

/** Everything a stream gave before it ended or threw, and what it threw. */
export async function drain<T>(stream: AsyncIterable<T>): Promise<{ items: T[]; error: unknown }> {
  const items: T[] = []
  try {
    for await (const item of stream) items.push(item)
  } catch (error) {
    return { items, error }
  }
  return { items, error: undefined }
}

/** The text of a message's content. */
export function textOf(content: readonly Anthropic.ContentBlock[]): string {
  return content.map((block) => (block.type === 'text' ? block.text : '')).join('')
}

/** Schema of a tool's arguments; the demo models fill it with `WEATHER_EXAMPLE`. */
export const WEATHER = {
  type: 'object' as const,
  properties: { city: { type: 'string', enum: ['Paris', 'Rome'] }, days: { type: 'integer', minimum: 2 } },
  required: ['city'],
}

/** The arguments that a demo model makes up for `WEATHER`. */
export const WEATHER_EXAMPLE = { city: 'Paris', days: 2 }
