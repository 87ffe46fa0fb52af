import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { responsesGateway } from '../../endpoints/responses/accounts.ts'
import { readExchange } from '../../support/exchange.ts'
import { chatBody, messageBody } from '../../support/gateway.ts'
import {
  answer,
  type Body,
  CHATS,
  input,
  MESSAGES,
  NOT_OWN,
  RESPONSES,
  storeOf,
  twoUpstreams,
} from '../../support/reference-rows.ts'
import { messageItem } from '../../support/responses-upstream.ts'
import { answerJson } from '../../support/scripted-upstream.ts'

const ENDPOINTS = [
  ['/v1/responses', 'openai', { model: 'chat', input: 'hi' }, RESPONSES],
  ['/v1/messages', 'anthropic', messageBody(), MESSAGES],
  ['/v1/chat/completions', 'openai', chatBody(), CHATS],
] as const

/** A skill that OpenAI offers to all. */
const CURATED_SKILL = { type: 'skill_reference', skill_id: 'openai-spreadsheets', version: 'latest' }

/** The report of a browser that the caller runs, after a call of its tool. */
const BROWSER_STATE = {
  type: 'browser_state',
  tabs: [{ tab_id: 'tab-1', title: 'Orders', url: 'https://shop.example/', active: true }],
  state_changes: [
    { type: 'tab_opened', tab_id: 'tab-1' },
    { type: 'download_started', download_id: 'download-1', url: 'https://shop.example/orders.csv' },
  ],
}

describe('a reference in the body of a JSON endpoint', () => {
  for (const [path, protocol, base, rows] of ENDPOINTS) {
    it(`${path}: goes to the line that keeps it, and nowhere if it is not the account's`, async (t) => {
      const [one, two] = await twoUpstreams(t)
      const kept = await storeOf(rows.map(([kind]) => kind))
      const gateway = await responsesGateway(t, {
        lines: [
          { url: one.url, protocol },
          { url: two.url, protocol, circuit: { minimumCalls: 1000 } },
        ],
        resourceStore: kept,
      })
      const ask = async (extra: Body) => readExchange(await gateway.post(path, { ...base, ...extra }))
      for (const [kind, param, body] of rows) {
        for (const id of NOT_OWN) {
          const refused = await ask(body(id))
          const what = `${param}: ${id.slice(0, 20)}`
          // The schema bounds this one.
          if (param === 'previous_response_id' && id.length > 1024) continue
          // An item that is only named is an input that cannot be read.
          assert.equal(refused.status, kind === 'item' ? 400 : 404, what)
          if (protocol === 'openai') {
            assert.equal(refused.errorCode, kind === 'item' ? 'invalid_request' : 'not_found', what)
            assert.ok(refused.envelope().error.message.includes(`(${param})`), what)
          }
        }
        assert.equal(
          one.requests.length + two.requests.length,
          0,
          `${param} (${kind}) of nobody reached a line`,
        )
        for (const [i, upstream] of [one, two].entries()) {
          const served = await ask(body(`own-${i}`))
          assert.equal(served.status, 200, `${param}: own-${i}: ${served.text}`)
          assert.equal(upstream.requests.length, 1, `${param}: own-${i}`)
          assert.equal(one.requests.length + two.requests.length, 1)
          upstream.requests.length = 0
        }
        two.script = (res) => answerJson(res, 503, { error: { message: 'busy' } })
        assert.equal((await ask(body('own-1'))).status, 503, 'no other line is tried')
        two.script = (res, { path }) => answerJson(res, 200, answer(path))
        assert.equal(one.requests.length, 0)
        two.requests.length = 0
      }
    })

    it(`${path}: names of its own data, and ids that link its parts, pass`, async (t) => {
      const [one] = await twoUpstreams(t)
      const gateway = await responsesGateway(t, { lines: [{ url: one.url, protocol }] })
      const schema = {
        type: 'object',
        properties: { order_id: { type: 'string' }, file_id: { type: 'string' } },
      }
      const tools = {
        '/v1/responses': [
          { type: 'function', name: 'f', parameters: schema },
          { type: 'shell', environment: { type: 'container_auto', skills: [CURATED_SKILL] } },
        ],
        '/v1/messages': [{ name: 'f', input_schema: schema, input_examples: [{ order_id: '1' }] }],
        '/v1/chat/completions': [{ type: 'function', function: { name: 'f', parameters: schema } }],
      }[path]
      const conversation = {
        '/v1/responses': {
          input: [
            { role: 'user', content: 'hi' },
            { ...messageItem('earlier', 'msg_mine'), annotations: [{ file_id: 'cited' }] },
            {
              type: 'function_call',
              id: 'fc_1',
              call_id: 'call_1',
              name: 'f',
              arguments: '{"order_id":"1"}',
            },
            { type: 'function_call_output', call_id: 'call_1', output: 'ok' },
            { type: 'tool_search_call', id: 'tsc_1', call_id: 'call_2', execution: 'client', arguments: {} },
            { type: 'tool_search_output', call_id: 'call_2', execution: 'client', tools: [] },
            { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'sealed' },
          ],
          safety_identifier: 's',
          client_metadata: { thread_id: 't', 'x-window-id': 'w' },
          prompt_cache_key: 'k',
        },
        '/v1/messages': {
          messages: [
            { role: 'user', content: 'hi' },
            {
              role: 'assistant',
              content: [{ type: 'tool_use', id: 'toolu_1', name: 'f', input: { order_id: '1' } }],
            },
            {
              role: 'user',
              content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: [BROWSER_STATE] }],
            },
          ],
          container: null,
        },
        '/v1/chat/completions': {
          messages: [
            { role: 'user', content: 'hi' },
            {
              role: 'assistant',
              tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'f', arguments: '{}' } }],
            },
            { role: 'tool', tool_call_id: 'call_1', content: 'ok' },
          ],
          user_id: 'u',
          stop_token_ids: [1, 2],
        },
      }[path]
      const served = await readExchange(
        await gateway.post(path, {
          ...base,
          ...conversation,
          tools,
          session_id: 'of-its-own',
          metadata: { user_id: 'u', file_id: 'mine' },
        }),
      )
      assert.equal(served.status, 200, served.text)
      const [received] = one.requests
      const sent: Body = { ...conversation, tools }
      for (const member of ['input', 'messages', 'tools'])
        assert.deepEqual(received?.json[member], sent[member])
    })
  }

  it('is of one place', async (t) => {
    const [one, two] = await twoUpstreams(t)
    const kept = await storeOf(['file', 'response'])
    const gateway = await responsesGateway(t, {
      lines: [{ url: one.url }, { url: two.url }],
      resourceStore: kept,
    })
    const mixed = await gateway.create({
      previous_response_id: 'own-0',
      ...input({ type: 'input_file', file_id: 'own-1' }),
    })
    assert.equal(mixed.errorCode, 'invalid_request')
    assert.ok(mixed.envelope().error.param)
    assert.equal(one.requests.length + two.requests.length, 0)
  })
})
