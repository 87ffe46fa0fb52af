import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { envelopeOf } from '../../support/answer-bodies.ts'
import { byteUpstream } from '../../support/byte-upstream.ts'
import { chain } from './watched-chain.ts'

describe('an answer that is no success', () => {
  for (const [status, code] of [
    [302, 'upstream_error'],
    [400, 'invalid_request'],
    [404, 'not_found'],
    [429, 'upstream_rate_limited'],
    [500, 'upstream_error'],
  ] as const)
    it(`is an error of the gateway: ${status}`, async (t) => {
      const upstream = await byteUpstream(t, (_req, res) => void res.writeHead(status).end('words'))
      const { ask, entry } = await chain(t, upstream.url)
      const answer = await ask()
      const { error, request_id } = await envelopeOf(answer)
      assert.equal(error.code, code)
      const { outcome, routing } = await entry(request_id)
      assert.equal(outcome, 'failed')
      assert.deepEqual(
        routing?.attempts.map(({ upstream_status, outcome }) => [upstream_status, outcome]),
        [[status, code]],
      )
    })

  it('is bare where it only says what has not changed, or cannot be', async (t) => {
    for (const status of [304, 412, 416]) {
      const headers = { etag: '"1"', 'content-type': 'text/plain' }
      const upstream = await byteUpstream(t, (_req, res) => {
        res.writeHead(status, headers).end(status === 304 ? undefined : 'words')
      })
      const { ask } = await chain(t, upstream.url)
      const answer = await ask()
      assert.deepEqual([answer.status, await answer.text(), answer.headers.get('etag')], [status, '', '"1"'])
      assert.equal(answer.headers.get('content-type'), null)
    }
  })
})
