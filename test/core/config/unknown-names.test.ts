import assert from 'node:assert/strict'
import { it } from 'node:test'
import { jsonOf } from '../../support/answer-bodies.ts'
import { assembledGateway } from '../../support/assembled-gateway.ts'

const adminToken = 'admin-token-of-this-test'
const MESSAGE = 'the config names models or regions that do not exist'

const config = {
  accounts: [
    { id: 'acme', lineRegions: ['us', 'mars'] },
    { id: 'globex', lineRegions: ['us'] },
  ],
  keys: [
    { id: 'k', account: 'acme', secret: 'sk-1', allowModels: ['chat', 'ch*', 'gpt-9', 'claude-*'] },
    { id: 'all', account: 'globex', secret: 'sk-2' },
  ],
  models: [{ id: 'chat', kind: 'chat' }],
  lines: [
    {
      id: 'l',
      provider: 'p',
      protocol: 'openai',
      baseUrl: 'http://localhost:1/v1',
      region: 'us',
      models: { chat: 'm' },
    },
  ],
}

it('references to unknown names are reported in the log and in the answers of the admin API, and never refused', async (t) => {
  const { url, logged, gateway } = await assembledGateway(t, config, { adminToken })
  const told = () =>
    logged
      .filter(({ message }) => message === MESSAGE)
      .map(({ fields }) => (fields as { warnings: string[] }).warnings)
  assert.deepEqual(told(), [
    [
      'account acme: line_regions: there is no line in the region "mars"',
      'key k: allow_models: there is no model "gpt-9"',
      'key k: allow_models: there is no model "claude-*"',
    ],
  ])
  const ask = async (method: string, path: string, body?: object) => {
    const headers = { authorization: `Bearer ${adminToken}`, 'content-type': 'application/json' }
    const sent = { method, headers, ...(body && { body: JSON.stringify(body) }) }
    const answer = await fetch(`${url}/admin${path}`, sent)
    assert.ok(answer.ok, `${method} ${path}: ${answer.status}`)
    return jsonOf<{ id: string; warnings: string[]; data: { warnings: string[] }[] }>(answer)
  }
  const gone = (name: string) => `allow_models: there is no model "${name}"`
  assert.deepEqual((await ask('GET', '/keys/k')).warnings, [gone('gpt-9'), gone('claude-*')])
  assert.deepEqual(
    (await ask('GET', '/keys')).data.map(({ warnings }) => warnings.length),
    [0, 2],
  )
  assert.deepEqual((await ask('PATCH', '/keys/k', { allow_models: ['next'] })).warnings, [gone('next')])
  const made = await ask('POST', '/keys', { account: 'acme', allow_models: ['chat', 'none'] })
  assert.deepEqual(made.warnings, [gone('none')])
  assert.deepEqual((await ask('POST', `/keys/${made.id}/rotate`)).warnings, [gone('none')])
  assert.deepEqual((await ask('GET', '/accounts/acme')).warnings, [
    'line_regions: there is no line in the region "mars"',
  ])
  assert.deepEqual((await ask('PATCH', '/accounts/acme', { line_regions: null })).warnings, [])

  await gateway.reload({ ...config, models: [...config.models, { id: 'next', kind: 'chat' }] })
  assert.deepEqual((await ask('GET', '/keys/k')).warnings, [])
  assert.equal(told().length, 2, 'told again at the reload')
  await gateway.reload({ ...config, accounts: [{ id: 'acme' }, { id: 'globex' }], keys: [] })
  assert.equal(told().length, 2, 'nothing to tell')
})
