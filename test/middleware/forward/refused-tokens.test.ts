import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { byteUpstream } from '../../support/byte-upstream.ts'
import { forwardGateway } from '../../support/forward-gateway.ts'
import { startTokenServer } from '../../support/token-server.ts'

/** A line that is asked with tokens, and answers as a test says. */
async function tokened(t: TestContext, statusOf: (token: string) => number) {
  const tokens = await startTokenServer()
  t.after(() => tokens.close())
  const sent: string[] = []
  const upstream = await byteUpstream(t, (req, res) => {
    const token = req.headers.authorization ?? ''
    sent.push(token)
    req.resume().on('end', () => res.writeHead(statusOf(token)).end())
  })
  const apiKey = { oauth: { tokenUrl: tokens.url, clientId: 'c', clientSecret: 's' } }
  const gateway = await forwardGateway(t, {
    lines: [{ url: upstream.url, apiKey, circuit: { minimumCalls: 1000 } }],
  })
  const ask = async () => (await gateway.ask('/v1/files', { method: 'POST', body: 'x' })).status
  return { tokens, gateway, sent, ask }
}

describe('a token of a line that is passed on to', () => {
  it('is fetched anew for the next request once it was refused: the body is read, and not sent twice', async (t) => {
    const { ask, sent } = await tokened(t, (token) => (token === 'Bearer token-1' ? 401 : 200))
    assert.deepEqual([await ask(), await ask(), await ask()], [502, 200, 200])
    assert.deepEqual(sent, ['Bearer token-1', 'Bearer token-2', 'Bearer token-2'])
  })

  it('is kept where the line refuses something else', async (t) => {
    const statuses = [403, 400, 500, 200]
    const { ask, sent, tokens } = await tokened(t, () => statuses.shift() ?? 200)
    for (let i = 0; i < 4; i++) await ask()
    assert.deepEqual(new Set(sent), new Set(['Bearer token-1']))
    assert.equal(tokens.forms.length, 1)
  })

  it('that cannot be had is a failure of the line, which is not asked', async (t) => {
    const { ask, sent, tokens, gateway } = await tokened(t, () => 200)
    tokens.script = (res) => void res.writeHead(500).end()
    assert.equal(await ask(), 502)
    assert.deepEqual(sent, [])
    assert.deepEqual(await gateway.books(), { spent: '0', charges: 0 })
  })
})
