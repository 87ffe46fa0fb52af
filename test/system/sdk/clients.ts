import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { KEY } from '../../support/gateway.ts'

/** Which official SDK makes a call, and whether it asks for a stream. */
export type SdkName = 'openai' | 'anthropic'

export const SDKS: readonly SdkName[] = ['openai', 'anthropic']

/** A client that keeps the answers its requests got, retries included. */
export interface RecordingClient {
  /** The head of every answer, in the order they came. */
  readonly answers: Response[]
  /** When each request went out, on the monotonic clock. */
  readonly sentAt: number[]
  /** Makes the smallest call of this SDK and reads its answer, or stream, to the end. */
  ask(model: string, options?: AskOptions): Promise<unknown>
}

export interface AskOptions {
  readonly stream?: boolean
  readonly headers?: Record<string, string>
  /** Members added to the body. */
  readonly extra?: Record<string, unknown>
}

export interface ClientOptions {
  readonly apiKey?: string
  /** Defaults to 0. */
  readonly maxRetries?: number
  readonly defaultHeaders?: Record<string, string | null>
}

/** The OpenAI client of a gateway. */
export const openaiOf = (url: string, options: ClientOptions & { fetch?: typeof fetch } = {}) =>
  new OpenAI({ baseURL: `${url}/v1`, apiKey: KEY, maxRetries: 0, ...options })

/** The Anthropic client of a gateway. */
export const anthropicOf = (url: string, options: ClientOptions & { fetch?: typeof fetch } = {}) =>
  new Anthropic({ baseURL: url, apiKey: KEY, maxRetries: 0, ...options })

/** A client of either SDK whose requests are recorded. */
export function recordingClient(sdk: SdkName, url: string, options: ClientOptions = {}): RecordingClient {
  const answers: Response[] = []
  const sentAt: number[] = []
  const recording: typeof fetch = async (input, init) => {
    sentAt.push(performance.now())
    const response = await fetch(input, init)
    answers.push(response)
    return response
  }
  const ask = sdk === 'openai' ? askOpenAi : askAnthropic
  return {
    answers,
    sentAt,
    ask: (model, asked = {}) => ask(url, { ...options, fetch: recording }, model, asked),
  }
}

type Fetching = ClientOptions & { fetch: typeof fetch }

async function askOpenAi(
  url: string,
  options: Fetching,
  model: string,
  { stream, headers, extra }: AskOptions,
) {
  const { completions } = openaiOf(url, options).chat
  const body = { model, messages: user('hi'), ...extra }
  const request = headers ? { headers } : {}
  return stream
    ? read(await completions.create({ ...body, stream: true }, request))
    : completions.create({ ...body, stream: false }, request)
}

async function askAnthropic(
  url: string,
  options: Fetching,
  model: string,
  { stream, headers, extra }: AskOptions,
) {
  const { messages } = anthropicOf(url, options)
  const body = { model, max_tokens: 100, messages: user('hi'), ...extra }
  const request = headers ? { headers } : {}
  return stream
    ? read(await messages.create({ ...body, stream: true }, request))
    : messages.create({ ...body, stream: false }, request)
}

/** A conversation of one message. */
export const user = (content: string) => [{ role: 'user' as const, content }]

/** Everything a stream gives; throws what it throws. */
export async function read<T>(events: AsyncIterable<T>): Promise<T[]> {
  const items: T[] = []
  for await (const event of events) items.push(event)
  return items
}

/** Everything a stream gave before it ended or threw, and what it threw. */
export async function drain<T>(events: AsyncIterable<T>): Promise<{ items: T[]; error: unknown }> {
  const items: T[] = []
  try {
    for await (const item of events) items.push(item)
  } catch (error) {
    return { items, error }
  }
  return { items, error: undefined }
}

/** Returns the reason that a promise rejects with; fails where it does not. */
export async function rejection(promise: Promise<unknown>): Promise<unknown> {
  try {
    await promise
  } catch (error) {
    return error
  }
  throw new Error('it did not reject')
}
