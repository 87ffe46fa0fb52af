import assert from 'node:assert/strict'
import { it } from 'node:test'
import { OPERATIONS } from '../../../lib/core/operations/index.ts'

type Json = Record<string, unknown>

function featuresOf(members: Json) {
  const body = { model: 'm', messages: [{ role: 'user', content: 'Hi' }], ...members }
  const chat = OPERATIONS.find(({ path }) => path === '/v1/chat/completions')
  return chat?.facts(body, Buffer.from(JSON.stringify(body)), (text) => text.length).featureParams
}

it('a chat asks for reasoning in the words of OpenRouter and LiteLLM, too', () => {
  const asked = (members: Json) => featuresOf(members)?.get('reasoning')
  const on: [string, Json][] = [
    ['reasoning', { reasoning: { effort: 'high' } }],
    ['reasoning', { reasoning: { enabled: true } }],
    ['reasoning', { reasoning: { max_tokens: 2000 } }],
    ['reasoning', { reasoning: { effort: 'low' }, thinking: { type: 'disabled' } }],
    ['thinking', { thinking: { type: 'enabled', budget_tokens: 2000 } }],
    ['thinking', { thinking: { type: 'enabled' }, reasoning_effort: null }],
    ['reasoning_effort', { reasoning_effort: 'low', thinking: { type: 'disabled' } }],
  ]
  for (const [param, members] of on) assert.equal(asked(members), param, JSON.stringify(members))
  const off: Json[] = [
    { reasoning: { effort: 'none' } },
    { reasoning: { enabled: false, effort: 'high' } },
    { reasoning: { exclude: true } },
    { reasoning: {} },
    { reasoning: null, thinking: null },
    { thinking: { type: 'disabled' } },
    { reasoning_effort: 'none', thinking: { type: 'enabled' } },
  ]
  for (const members of off) assert.equal(asked(members), undefined, JSON.stringify(members))
})
