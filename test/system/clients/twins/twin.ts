import type { ServerResponse } from 'node:http'
import {
  answerJson,
  type ReceivedRequest,
  type ScriptedUpstream,
  startUpstream,
  stream,
} from '../../../support/scripted-upstream.ts'
import { chatCompletion, chatEvents } from './chat-answer.ts'
import { type ChatHabits, readChat } from './chat-request.ts'
import { message, messageEvents } from './message-answer.ts'
import { readMessages } from './message-request.ts'
import { response, responseEvents } from './responses-answer.ts'
import { type Item, readResponses } from './responses-request.ts'
import { answerTo, type Heard, Refusal, type Said, type Usage } from './script.ts'

/** A provider that refuses what the real one would refuse, and else plays its part of each scenario. */
export interface Twin extends ScriptedUpstream {
  /** The usage that it has reported for each answer. */
  readonly answered: Usage[]
  /** Why it has refused. */
  readonly refusals: string[]
  /** Forgets both. */
  clear(): void
}

export type TwinKind = 'openai' | 'open-models' | 'gemini' | 'anthropic'

const HABITS: Record<Exclude<TwinKind, 'anthropic'>, ChatHabits> = {
  openai: { openai: true },
  'open-models': {},
  gemini: { signed: true },
}

export async function startTwin(kind: TwinKind): Promise<Twin> {
  const answered: Usage[] = []
  const refusals: string[] = []
  const bill = ({ results, thoughts, thinks }: Heard, { calls }: Said): Usage => {
    const usage = { input: 40 + 7 * results.length, output: 11 + 3 * calls.length, thoughts, shown: thinks }
    answered.push(usage)
    return usage
  }
  const exchanges: Record<string, (res: ServerResponse, body: unknown) => Promise<void> | void> =
    kind === 'anthropic'
      ? { '/v1/messages': (res, body) => answerMessages(res, body, bill) }
      : {
          '/v1/chat/completions': (res, body) => answerChat(res, body, HABITS[kind], bill),
          ...(kind === 'openai' && { '/v1/responses': responsesOf(bill) }),
        }
  const upstream = await startUpstream(async (res, { path, json }: ReceivedRequest) => {
    try {
      const exchange = exchanges[path.replace(/\?.*/, '')]
      if (!exchange) throw new Refusal(`There is no ${path} here.`)
      await exchange(res, json)
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      refusals.push(error.message)
      const { message, param = null } = error
      answerJson(res, 400, {
        type: 'error',
        error: { type: 'invalid_request_error', message, param, code: null },
      })
    }
  })
  const clear = () => {
    for (const list of [answered, refusals, upstream.requests]) list.length = 0
  }
  return Object.assign(upstream, { answered, refusals, clear })
}

type Bill = (heard: Heard, said: Said) => Usage

async function answerChat(res: ServerResponse, body: unknown, habits: ChatHabits, bill: Bill): Promise<void> {
  const { heard, stream: streamed, stream_options } = readChat(body, habits)
  const said = answerTo(heard)
  const given = [said, heard.results.length, bill(heard, said), habits.signed === true] as const
  if (!streamed)
    return void res.writeHead(200, { 'content-type': 'application/json' }).end(chatCompletion(...given))
  const events = chatEvents(...given)
  return stream(res, stream_options?.include_usage ? events : events.toSpliced(-2, 1))
}

async function answerMessages(res: ServerResponse, body: unknown, bill: Bill): Promise<void> {
  const request = readMessages(body)
  const { heard, stream: streamed } = request
  const said = answerTo(heard)
  const given = [said, heard.results.length, bill(heard, said), request] as const
  return streamed ? stream(res, messageEvents(...given)) : answerJson(res, 200, message(...given))
}

function responsesOf(bill: Bill) {
  const items = new Map<string, Item>()
  const conversations = new Map<string, readonly Item[]>()
  let made = 0
  return async (res: ServerResponse, body: unknown): Promise<void> => {
    const request = readResponses(body, { items, conversations })
    const { heard, stream: streamed, store, conversation } = request
    const said = answerTo(heard)
    const whole = response(said, ++made, bill(heard, said), request)
    if (store !== false) {
      for (const item of whole.output) if ('id' in item && item.id) items.set(item.id, item)
      conversations.set(whole.id, [...conversation, ...whole.output])
    }
    return streamed ? stream(res, responseEvents(whole)) : answerJson(res, 200, whole)
  }
}
