import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { finishedVideo } from '../../../support/finished-video.ts'
import { videoUpstreamFor } from '../../../support/video-gateway.ts'
import { ARK_VIDEO, errorOf, readTask } from '../../../support/video-protocols.ts'

describe('the address that a task-style line names for its video', () => {
  const refused: [string, (other: string) => string][] = [
    ['on another port of the same machine', (other) => `${other}/files/x`],
    ['on a name that is this machine', (other) => `https://localhost:${new URL(other).port}/x`],
    ['the metadata service', () => 'http://169.254.169.254/latest/meta-data'],
    ['a private address over https', () => 'https://10.0.0.1/x'],
    ['IPv6 loopback', () => 'https://[::1]/x'],
    ['IPv4 inside IPv6', () => 'https://[::ffff:127.0.0.1]/x'],
    ['IPv4 behind a translator', () => 'https://[64:ff9b::7f00:1]/x'],
    ['a number that is loopback', () => 'https://2130706433/x'],
    ['a public one over http', () => 'http://93.184.216.34/x'],
    ['with credentials', () => 'https://a:b@93.184.216.34/x'],
    ['a file', () => 'file:///etc/passwd'],
    ['no address at all', () => 'video.mp4'],
  ]
  for (const [name, urlOf] of refused) {
    it(`is not fetched: ${name}`, async (t) => {
      const other = await videoUpstreamFor(t)
      const { gateway, id } = await finishedVideo(t, 'ark', urlOf(other.url))
      const response = await gateway.send('GET', `/v1/videos/${id}/content`)
      assert.equal(response.status, 502)
      assert.equal((await errorOf(response)).code, 'upstream_error')
      assert.equal(other.requests.length, 0)
    })

    it(`is not fetched after a redirect either: ${name}`, async (t) => {
      const other = await videoUpstreamFor(t)
      const { upstream, gateway, id } = await finishedVideo(t, 'ark')
      const location = urlOf(other.url)
      // Relative, it would be the line's own.
      if (location === 'video.mp4') return
      upstream.script = (req, res) => {
        if (req.path.startsWith('/files/')) res.writeHead(302, { location }).end()
        return req.path.startsWith('/files/')
      }
      const response = await gateway.send('GET', `/v1/videos/${id}/content`)
      assert.equal(response.status, 502)
      assert.equal(other.requests.length, 0)
    })
  }

  it('is followed on its own origin, and not for ever', async (t) => {
    const { upstream, gateway, id } = await finishedVideo(t, 'ark')
    let loops = false
    upstream.script = (req, res) => {
      if (!req.path.startsWith('/files/') || (req.path === '/files/there' && !loops)) return false
      res.writeHead(302, { location: '/files/there' }).end()
      return true
    }
    const path = `/v1/videos/${id}/content`
    assert.equal((await gateway.send('GET', path)).status, 200)
    loops = true
    assert.equal((await gateway.send('GET', path)).status, 502)
  })

  it('takes no credentials along where a line redirects', async (t) => {
    const other = await videoUpstreamFor(t)
    const { upstream, gateway, id } = await finishedVideo(t, 'openai')
    upstream.script = (req, res) => {
      if (!req.path.endsWith('/content')) return false
      res.writeHead(302, { location: `${other.url}/files/x` }).end()
      return true
    }
    assert.equal((await gateway.send('GET', `/v1/videos/${id}/content`)).status, 502)
    assert.equal(other.requests.length, 0)
  })

  it('is in no answer, and in no log line', async (t) => {
    const { gateway, id } = await finishedVideo(t, 'ark', 'https://10.0.0.1/secret-address')
    await gateway.send('GET', `/v1/videos/${id}/content`)
    const seen = await readTask(gateway, ARK_VIDEO, id)
    const texts = JSON.stringify([seen, gateway.logger.lines])
    assert.ok(!texts.includes('10.0.0.1') && !texts.includes('secret-address'))
  })
})
