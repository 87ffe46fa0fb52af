import assert from 'node:assert/strict'
import { it } from 'node:test'
import { demoConfig } from '../../../examples/gateway/demo-models/config.ts'
import { startDemoModels } from '../../../examples/gateway/demo-models/server.ts'
import { ENDPOINTS_BY_PROTOCOL } from '../../../lib/core/catalog/index.ts'
import { loadConfig } from '../../support/any-config.ts'

it('the lines of the demo have no endpoint that the demo model server lacks', async (t) => {
  const server = await startDemoModels()
  t.after(server.close)
  const { lines } = loadConfig(demoConfig(server.url, 'sk-any')).catalog
  const urls = lines.flatMap(({ origin, basePath, protocol, endpoints = ENDPOINTS_BY_PROTOCOL[protocol] }) =>
    [...endpoints].map((endpoint) => `${origin}${basePath}/${endpoint}`),
  )
  const missing: string[] = []
  for (const url of new Set(urls)) {
    const headers = { authorization: 'Bearer sk-any', 'anthropic-version': '2023-06-01' }
    const response = await fetch(url, { method: 'POST', headers, body: '{"model":"demo-video"}' })
    await response.arrayBuffer()
    if (response.status === 404) missing.push(url.slice(server.url.length))
  }
  assert.ok(urls.length > 10)
  assert.deepEqual(missing, [])
})
