import assert from 'node:assert/strict'
import { beforeEach, describe, it, type TestContext } from 'node:test'
import type Anthropic from '@anthropic-ai/sdk'
import { jsonOf } from '../../support/answer-bodies.ts'
import { type AssembledGateway, assembledGateway } from '../../support/assembled-gateway.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import {
  answerJson,
  chatAnswer,
  messageAnswer,
  messageEvent,
  messageEvents,
  type ReceivedRequest,
  type ScriptedUpstream,
  startUpstream,
  stream,
  type UpstreamScript,
} from '../../support/scripted-upstream.ts'
import { anthropicOf, user } from './clients.ts'

const FOREIGN_KEY = 'sk-globex'
const CONFIG = {
  accounts: [{ id: 'acme' }, { id: 'globex' }],
  keys: [
    { id: 'key_acme', account: 'acme', secret: 'sk-test-1' },
    { id: 'key_globex', account: 'globex', secret: FOREIGN_KEY },
  ],
  models: [{ id: 'chat', kind: 'chat' }],
}
const CALL = { id: 'toolu_1', name: 'weather', input: { city: 'Bern' } }

interface ThreadBody {
  readonly thread?: { readonly type: string; readonly previous_message_id?: string }
  readonly messages: readonly { readonly role: string; readonly content: unknown }[]
  readonly stream?: boolean
}
const bodyOf = ({ json }: ReceivedRequest): ThreadBody => json as unknown as ThreadBody
const threadsOf = ({ requests }: ScriptedUpstream) => requests.map((request) => bodyOf(request).thread)
const isLastTurn = ({ messages }: ThreadBody): boolean =>
  /tool_result|"tool"/.test(JSON.stringify(messages.at(-1)))

/** A tool runner as the SDK makes it without options. */
function run(url: string, options: { stream?: boolean; headers?: Record<string, string> } = {}) {
  return anthropicOf(url).beta.messages.toolRunner(
    {
      model: 'chat',
      max_tokens: 100,
      messages: user('Weather?'),
      tools: [
        {
          type: 'custom',
          name: 'weather',
          description: '',
          input_schema: { type: 'object', properties: { city: { type: 'string' } } },
          run: () => 'It rains.',
          parse: (input: unknown) => input,
        },
      ],
      ...(options.stream && { stream: true as const }),
    },
    options.headers ? { headers: options.headers } : {},
  )
}

async function said(runner: ReturnType<typeof run>): Promise<string | undefined> {
  const { content } = (await runner.runUntilDone()) as Anthropic.Beta.BetaMessage
  return content.find((block) => block.type === 'text')?.text
}

/** An Anthropic-style line that keeps threads, and refuses to go on with others. */
function keepingThreads(line: string): UpstreamScript {
  let last = ''
  return async (res, request, index) => {
    const body = bodyOf(request)
    const { thread } = body
    if (thread?.type === 'continue' && thread.previous_message_id !== last) {
      const details = { error_code: 'thread_not_found' }
      const error = { type: 'not_found_error', message: 'No such thread.', details }
      return answerJson(res, 404, { type: 'error', error })
    }
    last = `msg_${line}_${index}`
    const asks = !isLastTurn(body)
    if (!body.stream) {
      const content = asks ? [{ type: 'tool_use', ...CALL }] : [{ type: 'text', text: 'Wet.' }]
      return messageAnswer(res, '', { id: last, content, stop_reason: asks ? 'tool_use' : 'end_turn' })
    }
    const events = messageEvents(['Wet.']).map((event) => event.replace('msg_1', last))
    if (!asks) return stream(res, events)
    return stream(res, [
      events[0] as string,
      messageEvent('content_block_start', {
        index: 0,
        content_block: { type: 'tool_use', ...CALL, input: {} },
      }),
      messageEvent('content_block_delta', {
        index: 0,
        delta: { type: 'input_json_delta', partial_json: JSON.stringify(CALL.input) },
      }),
      messageEvent('content_block_stop', { index: 0 }),
      messageEvent('message_delta', { delta: { stop_reason: 'tool_use' }, usage: { output_tokens: 3 } }),
      messageEvent('message_stop'),
    ])
  }
}

const lineOf = (upstream: ScriptedUpstream, id: string, more: object = {}) => ({
  id,
  provider: id,
  protocol: 'anthropic',
  baseUrl: `${upstream.url}/v1`,
  models: { chat: 'upstream-model' },
  ...more,
})

async function upstreams(t: TestContext): Promise<readonly [ScriptedUpstream, ScriptedUpstream]> {
  const pair = [await startUpstream(), await startUpstream()] as const
  for (const upstream of pair) t.after(() => upstream.close())
  return pair
}

const cleanUp = cleaningUp()
const gatewayOf = (lines: readonly object[]): Promise<AssembledGateway> =>
  assembledGateway(cleanUp, { ...CONFIG, lines })

describe('a tool runner of the Anthropic SDK, which keeps its conversation in a thread', () => {
  for (const headers of [undefined, { 'x-gateway-unsupported': 'drop' }]) {
    it(`goes on without one on an openai line${headers ? ' that drops what it does not know' : ''}`, async (t) => {
      const [line] = await upstreams(t)
      line.script = (res, request) => {
        if (isLastTurn(bodyOf(request))) return chatAnswer(res, 'Wet.')
        const call = { name: CALL.name, arguments: JSON.stringify(CALL.input) }
        const tool_calls = [{ id: 'call_1', type: 'function', function: call }]
        const message = { role: 'assistant', content: null, tool_calls }
        chatAnswer(res, '', { choices: [{ message, finish_reason: 'tool_calls' }] })
      }
      const { url } = await gatewayOf([lineOf(line, 'one', { protocol: 'openai' })])
      assert.equal(await said(run(url, headers && { headers })), 'Wet.')
      assert.deepEqual(
        line.requests.map((request) => bodyOf(request).messages.map(({ role }) => role)),
        [['user'], ['user', 'assistant', 'tool']],
      )
    })
  }

  for (const streamed of [false, true]) {
    it(`goes on at the line that has it${streamed ? ', streamed' : ''}`, async (t) => {
      const [first, second] = await upstreams(t)
      first.script = keepingThreads('a')
      second.script = keepingThreads('b')
      // The second is preferred as soon as the first has begun the thread.
      const busy: UpstreamScript = (res) => answerJson(res, 503, { error: { message: 'busy' } })
      const { url } = await gatewayOf([
        lineOf(second, 'two', { priority: 0 }),
        lineOf(first, 'one', { priority: 1 }),
      ])
      const { script } = second
      second.script = busy
      const runner = run(url, { stream: streamed })
      for await (const turn of runner) {
        await (streamed ? (turn as unknown as { done(): Promise<void> }).done() : turn)
        second.script = script
      }
      assert.deepEqual(threadsOf(first), [
        { type: 'create' },
        { type: 'continue', previous_message_id: 'msg_a_0' },
      ])
      assert.equal(bodyOf(first.requests[1] as ReceivedRequest).messages.length, 1)
      assert.deepEqual(threadsOf(second), [{ type: 'create' }])
    })
  }

  it('begins a new one if its line has lost it', async (t) => {
    const [line] = await upstreams(t)
    line.script = keepingThreads('a')
    const { url } = await gatewayOf([lineOf(line, 'one')])
    const runner = run(url)
    for await (const _turn of runner) if (line.requests.length === 1) line.script = keepingThreads('new')
    const [, lost, again] = threadsOf(line)
    assert.deepEqual([lost?.type, again?.type, line.requests.length], ['continue', 'create', 3])
    assert.equal(bodyOf(line.requests[2] as ReceivedRequest).messages.length, 3)
  })

  it('goes on without one at an anthropic line that knows none', async (t) => {
    const [line] = await upstreams(t)
    const keeps = keepingThreads('a')
    line.script = (res, request, index) => {
      if (!bodyOf(request).thread) return keeps(res, request, index)
      const error = { type: 'invalid_request_error', message: 'thread: Extra inputs are not permitted' }
      answerJson(res, 400, { type: 'error', error })
    }
    const { url } = await gatewayOf([lineOf(line, 'one')])
    assert.equal(await said(run(url)), 'Wet.')
    assert.equal(threadsOf(line).filter(Boolean).length, 1)
  })
})

describe('a thread', () => {
  let line: ScriptedUpstream
  let gateway: AssembledGateway
  const ask = (thread: object, init: RequestInit = {}) =>
    gateway.send('/v1/messages', { model: 'chat', max_tokens: 9, messages: user('Hi'), thread }, init)

  beforeEach(async () => {
    line = await startUpstream(keepingThreads('a'))
    cleanUp.after(() => line.close())
    gateway = await gatewayOf([lineOf(line, 'one')])
    assert.equal((await ask({ type: 'create' })).status, 200)
  })

  it('is that of its account', async () => {
    const thread = { type: 'continue', previous_message_id: 'msg_a_0' }
    const foreign = await ask(thread, { headers: { authorization: `Bearer ${FOREIGN_KEY}` } })
    const unknown = await ask({ ...thread, previous_message_id: 'msg_a_1' })
    for (const refused of [foreign, unknown]) {
      assert.equal(refused.status, 404)
      const { error } = await jsonOf<{ error: { type: string; details: object } }>(refused)
      assert.equal(error.type, 'not_found_error')
      assert.deepEqual(error.details, { error_code: 'thread_not_found' })
    }
    assert.equal(line.requests.length, 1)
    assert.equal((await ask(thread)).status, 200)
  })
})
