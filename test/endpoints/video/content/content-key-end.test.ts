import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { hashSecret } from '../../../../lib/core/catalog/index.ts'
import { finishedVideo } from '../../../support/finished-video.ts'
import { until } from '../../../support/until.ts'
import { KEY } from '../../../support/video-gateway.ts'
import { errorOf } from '../../../support/video-protocols.ts'

/** Keys in use are looked up every two seconds. */
const ENDS_WITHIN_MS = 5000

describe('a key that ends while its caller waits for a video', { concurrency: true }, () => {
  it('ends the look-up of the address', async (t) => {
    const { upstream, gateway, id } = await finishedVideo(t, 'ark')
    let waits = false
    let left = false
    upstream.script = (_req, res) => {
      waits = true
      res.on('close', () => {
        left = true
      })
      return true
    }
    const answer = gateway.send('GET', `/v1/videos/${id}/content`)
    await until(() => waits)
    gateway.keys.delete(hashSecret(KEY))
    const begun = performance.now()
    const response = await answer
    assert.ok(performance.now() - begun < ENDS_WITHIN_MS)
    assert.equal(response.status, 401)
    assert.equal((await errorOf(response)).code, 'invalid_credential')
    await until(() => left, 'the end of the look-up', 5000)
    assert.ok(!upstream.requests.some(({ path }) => path.startsWith('/files/')), 'nothing is downloaded')
  })

  for (const kind of ['ark', 'openai'] as const)
    it(`cuts the download off: ${kind} line`, async (t) => {
      const { upstream, gateway, id } = await finishedVideo(t, kind)
      let left = false
      upstream.script = ({ path }, res) => {
        if (!/content$|files/.test(path.split('?')[0] ?? '')) return false
        res.writeHead(200, { 'content-type': 'video/mp4', 'content-length': '1000' }).write('first bytes')
        res.on('close', () => {
          left = true
        })
        return true
      }
      const response = await gateway.send('GET', `/v1/videos/${id}/content`)
      assert.equal(response.status, 200)
      gateway.keys.delete(hashSecret(KEY))
      const begun = performance.now()
      await assert.rejects(response.arrayBuffer())
      assert.ok(performance.now() - begun < ENDS_WITHIN_MS)
      await until(() => left, 'the end of the download', 5000)
      const { outcome, error_code } = await gateway.entry(response)
      assert.deepEqual([outcome, error_code], ['interrupted', 'invalid_credential'])
    })
})
