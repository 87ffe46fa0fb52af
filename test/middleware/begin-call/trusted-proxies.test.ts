import assert from 'node:assert/strict'
import { it } from 'node:test'
import { callOf } from '../../../lib/core/call/index.ts'
import { beginCall, trustedProxies } from '../../../lib/middleware/begin-call/index.ts'
import { jsonOf } from '../../support/answer-bodies.ts'
import { serveApp } from '../../support/app-server.ts'

for (const [setting, forwarded, caller] of [
  [['127.0.0.1', '10.0.0.0/8'], '203.0.113.7:1025, 10.0.0.5:4431, 10.0.0.6', '203.0.113.7'],
  [['loopback', '2001:db8::/32'], '[2001:db9::7]:1025, [2001:db8::5]:4431', '2001:db9::7'],
  ['127.0.0.1, uniquelocal', '203.0.113.7:1025, ::ffff:10.0.0.5', '203.0.113.7'],
  [['127.0.0.1'], '203.0.113.7, 10.0.0.5:4431', '10.0.0.5'],
  [['127.0.0.1', '10.0.0.0/8'], '203.0.113.7, unknown, 10.0.0.5', null],
  [['10.0.0.0/8'], '203.0.113.7', '127.0.0.1'],
  [[], '203.0.113.7', '127.0.0.1'],
  [2, '198.51.100.1, 203.0.113.7:1025, 10.0.0.5:4431', '203.0.113.7'],
  [false, '203.0.113.7', '127.0.0.1'],
  [true, '203.0.113.7:1025, 10.0.0.5', '203.0.113.7'],
] as const)
  it(`behind ${JSON.stringify(setting)}, the caller of "${forwarded}" is ${caller}`, async (t) => {
    const app = await serveApp((app) => {
      app.set('trust proxy', trustedProxies(setting))
      app.use(beginCall({ logger: { info() {}, warn() {}, error() {} } }))
      app.get('/', (req, res) => res.json({ ip: callOf(req).clientIp }))
    })
    t.after(() => app.close())
    const answer = await fetch(app.url, { headers: { 'x-forwarded-for': forwarded } })
    assert.equal((await jsonOf<{ ip: string | null }>(answer)).ip, caller)
  })

it('an address that is not valid is refused', () => {
  assert.throws(() => trustedProxies(['10.0.0']), TypeError)
})
