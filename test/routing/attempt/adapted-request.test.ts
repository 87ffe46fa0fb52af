import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { describe, it } from 'node:test'
import type { CallRequest } from '../../../lib/core/call/index.ts'
import { chatCompletions, messages, type Operation } from '../../../lib/core/operations/index.ts'
import { Untranslatable } from '../../../lib/core/translate/index.ts'
import { type AdaptedRequest, RequestAdapter } from '../../../lib/routing/attempt/adapted-request.ts'
import type { Candidate } from '../../../lib/routing/candidates/candidate.ts'

type Json = Record<string, unknown>

function requestOf(operation: Operation, json: Json, members: Json = {}): CallRequest {
  const body = { json, raw: Buffer.from(JSON.stringify(json)) }
  return { operation, body, references: [], model: { id: 'm' }, ...members } as unknown as CallRequest
}

const NATIVE = { native: true } as Candidate
/** A candidate of another protocol, for which a request is translated. */
const across = (protocol: string, upstreamModel = 'u', line: Json = {}) =>
  ({ native: false, upstreamModel, line: { protocol, ...line } }) as unknown as Candidate

const adapted = (request: CallRequest, candidate: Candidate) => new RequestAdapter(request).for(candidate)
const formOf = (adapter: RequestAdapter, candidate: Candidate): AdaptedRequest => {
  const made = adapter.for(candidate)
  assert.ok(!(made instanceof Untranslatable), String(made))
  return made
}

const OWN = { type: 'text', text: 'Hi' }
const FOREIGN = { type: 'thinking', thinking: 'hm', signature: 'unsigned:openai-style-line' }
const turns = (...content: Json[]) => ({
  model: 'm',
  max_tokens: 5,
  messages: [{ role: 'assistant', content }],
})

describe('the request to a line of its own protocol', () => {
  it('has no additions that a translated line left in the conversation', () => {
    const request = requestOf(messages, turns(FOREIGN, OWN))
    const { body, operation } = adapted(request, NATIVE) as CallRequest
    assert.equal(operation, messages)
    assert.deepEqual(body.json, turns(OWN))
    assert.deepEqual(JSON.parse(body.raw.toString()), turns(OWN))
    assert.deepEqual(request.body.json, turns(FOREIGN, OWN), 'that of other lines has it still')
  })

  it('is as the caller sent it if there are no such additions', () => {
    const plain = requestOf(messages, turns(OWN))
    assert.equal(adapted(plain, NATIVE), plain)
  })
})

describe('a chat with members of OpenRouter', () => {
  const messages = [{ role: 'user', content: [{ ...OWN, cache_control: { type: 'ephemeral' } }] }]
  const json = { model: 'm', messages, reasoning: { effort: 'high' }, usage: { include: true } }
  const native = (provider: string, upstreamModel: string, line: Json = {}) =>
    ({
      native: true,
      upstreamModel,
      line: { provider, origin: 'https://a.test', ...line },
    }) as unknown as Candidate

  it('is unchanged for routers, which know them', () => {
    const request = requestOf(chatCompletions, json)
    assert.equal(adapted(request, native('openrouter', 'openai/gpt-5.2')), request)
  })

  it('has the members of OpenAI on other lines, translated once for each model', () => {
    const request = requestOf(chatCompletions, json)
    const adapter = new RequestAdapter(request)
    const made = formOf(adapter, native('openai', 'gpt-5.2'))
    const expected = { model: 'm', messages: [{ role: 'user', content: [OWN] }], reasoning_effort: 'high' }
    assert.deepEqual(made.body.json, expected)
    assert.deepEqual(JSON.parse(made.body.raw.toString()), expected)
    assert.deepEqual(
      [made.operation, made.translation, made.dropped],
      [chatCompletions, undefined, undefined],
    )
    assert.equal(adapter.for(native('openai', 'gpt-5.2')), made)
    assert.deepEqual(formOf(adapter, native('openai', 'gpt-4o')).dropped, ['reasoning'])
  })

  it('removes a line that lacks the effort, unless members may be left out there', () => {
    const request = requestOf(chatCompletions, { ...json, reasoning: { effort: 'max' } })
    const adapter = new RequestAdapter(request)
    const fault = adapter.for(native('openai', 'gpt-5.2'))
    assert.deepEqual([fault instanceof Untranslatable, (fault as Untranslatable).param], [true, 'reasoning'])
    const dropping = formOf(adapter, native('openai', 'gpt-5.2', { unsupported: 'drop' }))
    assert.deepEqual([dropping.dropped, dropping.body.json.reasoning_effort], [['reasoning'], undefined])
  })
})

describe('the request to a line of another protocol', () => {
  const chat = { model: 'm', messages: [{ role: 'user', content: 'Hi' }] }

  it('is translated once for each model, and limited by what the catalogue says', () => {
    const request = requestOf(chatCompletions, chat)
    const adapter = new RequestAdapter(request)
    const made = formOf(adapter, across('anthropic'))
    assert.equal(made.operation, messages)
    assert.equal(made.body.json.max_tokens, 4096)
    assert.deepEqual(JSON.parse(made.body.raw.toString()), made.body.json)
    assert.equal(adapter.for(across('anthropic')), made)
    assert.notEqual(adapter.for(across('anthropic', 'other')), made)
    const limited = requestOf(chatCompletions, chat, { model: { id: 'm', maxOutputTokens: 77 } })
    const short = adapted(limited, across('anthropic'))
    assert.equal((short as CallRequest).body.json.max_tokens, 77)
  })

  it('is refused for a member without a counterpart, or sent without it if the caller or the line allows that', () => {
    const json = { ...chat, logit_bias: { 5: 1 } }
    const request = requestOf(chatCompletions, json)
    const adapter = new RequestAdapter(request)
    const refused = adapter.for(across('anthropic'))
    assert.ok(refused instanceof Untranslatable)
    assert.equal(refused.param, 'logit_bias')
    const dropped = formOf(adapter, across('anthropic', 'u', { unsupported: 'drop' }))
    assert.deepEqual(dropped.dropped, ['logit_bias'])
    const asked = requestOf(chatCompletions, json, { unsupported: 'refuse' })
    assert.ok(adapted(asked, across('anthropic', 'u', { unsupported: 'drop' })) instanceof Untranslatable)
  })
})
