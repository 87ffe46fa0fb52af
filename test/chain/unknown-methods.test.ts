import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { ADMIN_ENDPOINTS } from '../../lib/management/admin-endpoints.ts'
import { envelopeOf } from '../support/answer-bodies.ts'
import { type AssembledGateway, assembledGateway } from '../support/assembled-gateway.ts'
import { cleaningUp } from '../support/clean-up.ts'

const CONFIG = {
  lines: [
    {
      id: 'l',
      provider: 'p',
      protocol: 'openai',
      baseUrl: 'http://127.0.0.1:9/v1',
      models: { chat: 'chat' },
    },
  ],
  models: [{ id: 'chat', kind: 'chat' }],
}
const ADMIN_TOKEN = 'admin-token-of-the-tests'
const ORIGIN = 'https://app.example.com'

/** The paths of look-ups, two of model calls, and an open page. */
const PATHS = [
  '/v1/models',
  '/v1/models/chat',
  '/v1/models/chat/routing',
  '/v1/calls',
  '/v1/calls/req_1',
  '/v1/usage',
  '/v1/account',
  '/v1/tickets',
  '/v1/tickets/tkt_1',
  '/v1/responses/resp_1',
  '/v1/videos',
  '/v1/videos/video_1',
  '/v1/videos/video_1/content',
  '/api/v3/contents/generations/tasks',
  '/api/v3/contents/generations/tasks/cgt_1',
  '/v1/chat/completions',
  '/v1/messages',
  '/healthz',
]
const ADMIN_PATHS = [
  ...new Set(ADMIN_ENDPOINTS.map(({ path }) => `/admin${path.replaceAll(/\{\w+\}/g, 'x')}`)),
]

describe('the method OPTIONS', () => {
  const cleanUp = cleaningUp()
  let gateway: AssembledGateway
  before(async () => {
    gateway = await assembledGateway(
      cleanUp,
      { ...CONFIG, cors: { origins: [ORIGIN] } },
      { adminToken: ADMIN_TOKEN },
    )
  })

  it('is not found at any path of operators', async () => {
    assert.ok(ADMIN_PATHS.length > 30)
    const headers = { authorization: `Bearer ${ADMIN_TOKEN}` }
    for (const path of ADMIN_PATHS) await isNotFound(gateway, path, headers)
  })

  it('without cross-origin access is not found at any path', async (t) => {
    const closed = await assembledGateway(t, CONFIG)
    for (const path of PATHS) await isNotFound(closed, path)
  })

  it('is a preflight for the pages that may call the gateway', async () => {
    const headers = { origin: ORIGIN, 'access-control-request-method': 'GET' }
    for (const path of PATHS.filter((path) => path !== '/healthz')) {
      const response = await fetch(gateway.url + path, { method: 'OPTIONS', headers })
      const allowed = response.headers.get('access-control-allow-origin')
      assert.deepEqual([response.status, allowed], [204, ORIGIN], path)
    }
  })
})

async function isNotFound({ send }: AssembledGateway, path: string, headers = {}): Promise<void> {
  const response = await send(path, undefined, { method: 'OPTIONS', headers })
  assert.deepEqual([response.status, response.headers.get('allow')], [404, null], path)
  const { error, request_id: id } = await envelopeOf(response)
  assert.equal(id, response.headers.get('x-request-id'), path)
  // The Anthropic-style envelope has no code.
  assert.match(error.code ?? error.type, /^not_found/, path)
}
