import assert from 'node:assert/strict'
import { test } from 'node:test'
import { assembledGateway } from '../../support/assembled-gateway.ts'
import { chat } from '../../support/gateway-process.ts'
import { answerJson, startUpstream } from '../../support/scripted-upstream.ts'
import { convert } from './converted.ts'

test('a converted config serves: the deployments of a model first, its fallbacks only after them', async (t) => {
  const deployments = [await startUpstream(), await startUpstream()]
  const fallback = await startUpstream()
  for (const upstream of [...deployments, fallback]) t.after(() => upstream.close())
  const { config } = convert(`
model_list:
  - { model_name: a, litellm_params: { model: openai/one, api_base: "${deployments[0]?.url}/v1", api_key: sk-1, rpm: 10 } }
  - { model_name: a, litellm_params: { model: openai/two, api_base: "${deployments[1]?.url}/v1", api_key: sk-2, rpm: 10 } }
  - { model_name: b, litellm_params: { model: openai/three, api_base: "${fallback.url}/v1", api_key: sk-3 } }
router_settings: { fallbacks: [{ a: [b] }], model_group_alias: { alias: a } }
general_settings: { master_key: sk-of-the-operator }`)
  const { send } = await assembledGateway(t, config)
  const headers = { authorization: 'Bearer sk-of-the-operator' }
  const ask = async (model: string): Promise<number> =>
    (await send('/v1/chat/completions', chat(model), { headers })).status

  for (let i = 0; i < 30; i++) assert.equal(await ask(i % 2 ? 'a' : 'alias'), 200)
  assert.equal(fallback.requests.length, 0)
  for (const { requests } of deployments) assert.ok(requests.length > 0)

  for (const upstream of deployments) upstream.script = (res) => answerJson(res, 503, { error: {} })
  assert.equal(await ask('a'), 200)
  assert.deepEqual(
    fallback.requests.map(({ json, headers }) => [json.model, headers.authorization]),
    [['three', 'Bearer sk-3']],
  )
  assert.equal(await ask('alias'), 200)
  assert.equal(fallback.requests.length, 2)
})
