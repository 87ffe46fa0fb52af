import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { gzipSync } from 'node:zlib'
import { finishedVideo } from '../../../support/finished-video.ts'
import { startVideoGateway, TASKS, videoUpstreamFor } from '../../../support/video-gateway.ts'
import {
  ARK_VIDEO,
  createTask,
  errorOf,
  OPENAI_VIDEO,
  readTask,
  VIDEO_PROTOCOLS,
} from '../../../support/video-protocols.ts'

describe('the content of a video', () => {
  for (const { kind } of VIDEO_PROTOCOLS) {
    it(`${kind} line: comes in ranges, and under conditions, as the line answers them`, async (t) => {
      const { upstream, gateway, id } = await finishedVideo(t, kind)
      const get = (headers: Record<string, string>) =>
        gateway.send('GET', `/v1/videos/${id}/content`, undefined, headers)
      const part = await get({ range: 'bytes=4-9', 'if-range': '"v1"' })
      assert.equal(part.status, 206)
      assert.equal(part.headers.get('content-range'), `bytes 4-9/${upstream.content.length}`)
      assert.deepEqual(Buffer.from(await part.arrayBuffer()), upstream.content.subarray(4, 10))
      assert.equal(upstream.requests.at(-1)?.headers['if-range'], '"v1"')
      const beyond = await get({ range: 'bytes=9999-' })
      assert.equal(beyond.status, 416)
      assert.equal(beyond.headers.get('content-range'), `bytes */${upstream.content.length}`)
      const whole = await get({})
      assert.equal(whole.headers.get('etag'), '"v1"')
      assert.equal(whole.headers.get('x-content-type-options'), 'nosniff')
      const head = await fetch(`${gateway.url}/v1/videos/${id}/content`, {
        method: 'HEAD',
        headers: { authorization: 'Bearer sk-video-1' },
      })
      assert.equal(head.headers.get('content-length'), String(upstream.content.length))
    })

    it(`${kind} line: is whole where the line compresses it unasked`, async (t) => {
      const { upstream, gateway, id } = await finishedVideo(t, kind)
      upstream.script = (req, res) => {
        if (!/content$|files/.test(req.path.split('?')[0] ?? '')) return false
        assert.equal(req.headers['accept-encoding'], 'identity')
        res.writeHead(200, { 'content-type': 'video/mp4', 'content-encoding': 'gzip' })
        res.end(gzipSync(upstream.content))
        return true
      }
      const whole = await gateway.send('GET', `/v1/videos/${id}/content`)
      assert.deepEqual(Buffer.from(await whole.arrayBuffer()), upstream.content)
    })

    it(`${kind} line: the caller's credentials stay here`, async (t) => {
      const { upstream, gateway, id } = await finishedVideo(t, kind)
      await gateway.send('GET', `/v1/videos/${id}/content`, undefined, { cookie: 'session=1' })
      const sent = upstream.requests.at(-1)
      assert.ok(!JSON.stringify(sent?.headers).includes('sk-video-1'))
      assert.equal(sent?.headers.cookie, undefined)
      assert.equal(sent?.headers.authorization, kind === 'openai' ? 'Bearer upstream-key-0' : undefined)
    })

    it(`${kind} line: is a conflict before it is finished`, async (t) => {
      const upstream = await videoUpstreamFor(t)
      const gateway = await startVideoGateway(t, { lines: [{ kind, url: upstream.url }] })
      const id = await createTask(gateway, OPENAI_VIDEO)
      const early = await gateway.send('GET', `/v1/videos/${id}/content`)
      assert.equal((await errorOf(early)).code, 'conflict')
    })

    it(`${kind} line: what the line refuses with stays here`, async (t) => {
      const { upstream, gateway, id } = await finishedVideo(t, kind)
      const cases = [
        [404, 'not_found'],
        [403, 'upstream_error'],
        [429, 'upstream_rate_limited'],
        [503, 'upstream_overloaded'],
      ] as const
      for (const [status, code] of cases) {
        upstream.script = (req, res) => {
          if (!/content$|files/.test(req.path.split('?')[0] ?? '')) return false
          res.writeHead(status, { 'content-type': 'text/html' }).end('<h1>bucket-7.internal</h1>')
          return true
        }
        const response = await gateway.send('GET', `/v1/videos/${id}/content`)
        const error = await errorOf(response)
        assert.equal(error.code, code)
        assert.ok(!error.message.includes('bucket'))
      }
    })

    it(`${kind} line: the wait that the line asks for is passed on, a minute at most, and none for other refusals`, async (t) => {
      const { upstream, gateway, id } = await finishedVideo(t, kind)
      for (const [status, asked, told] of [
        [429, '7', '7'],
        [429, '86400', '60'],
        [429, 'Fri, 01 Jan 2100 00:00:00 GMT', '60'],
        [503, '86400', '60'],
        [403, '7', null],
      ] as const) {
        upstream.script = (req, res) => {
          if (!/content$|files/.test(req.path.split('?')[0] ?? '')) return false
          res.writeHead(status, { 'retry-after': asked }).end()
          return true
        }
        const { headers } = await gateway.send('GET', `/v1/videos/${id}/content`)
        assert.equal(headers.get('retry-after'), told, `${status}: ${asked}`)
      }
    })

    it(`${kind} line: breaks off where the line does, and is not made to look whole`, async (t) => {
      const { upstream, gateway, id } = await finishedVideo(t, kind)
      upstream.script = (req, res) => {
        if (!/content$|files/.test(req.path.split('?')[0] ?? '')) return false
        res.writeHead(200, { 'content-type': 'video/mp4', 'content-length': 1000 }).write('a beginning')
        setTimeout(() => res.destroy(), 20)
        return true
      }
      const response = await gateway.send('GET', `/v1/videos/${id}/content`)
      assert.equal(response.status, 200)
      await assert.rejects(response.arrayBuffer())
      assert.equal((await gateway.entry(response)).error_code, 'upstream_error')
    })

    it(`${kind} line: an aborted download ends upstream at once`, async (t) => {
      const { upstream, gateway, id } = await finishedVideo(t, kind)
      const closed = Promise.withResolvers<void>()
      upstream.script = (req, res) => {
        if (!/content$|files/.test(req.path.split('?')[0] ?? '')) return false
        res.writeHead(200, { 'content-type': 'video/mp4' }).write('a beginning')
        res.on('close', () => closed.resolve())
        return true
      }
      const leaving = new AbortController()
      const response = await fetch(`${gateway.url}/v1/videos/${id}/content`, {
        headers: { authorization: 'Bearer sk-video-1' },
        signal: leaving.signal,
      })
      assert.equal(response.status, 200)
      leaving.abort()
      await closed.promise
    })
  }

  it("variants are the line's, and of task-style lines there is the video alone", async (t) => {
    const openai = await finishedVideo(t, 'openai')
    const path = `/v1/videos/${openai.id}/content?variant=`
    assert.equal((await openai.gateway.send('GET', `${path}thumbnail`)).status, 200)
    assert.equal(openai.upstream.requests.at(-1)?.path, '/v1/videos/up-1/content?variant=thumbnail')
    const unknown = await errorOf(await openai.gateway.send('GET', `${path}../../x`))
    assert.deepEqual([unknown.code, unknown.param], ['invalid_request', 'variant'])
    const ark = await finishedVideo(t, 'ark')
    const still = await ark.gateway.send('GET', `/v1/videos/${ark.id}/content?variant=thumbnail`)
    const error = await errorOf(still)
    assert.deepEqual([error.code, error.param], ['unsupported_feature', 'variant'])
  })

  it('and its task refuse parameters that they do not know, with a signed address too', async (t) => {
    const { gateway, upstream, id } = await finishedVideo(t, 'openai')
    const { content } = await readTask(gateway, ARK_VIDEO, id)
    const { search } = new URL((content as { video_url: string }).video_url)
    const asked = upstream.requests.length
    const own = `/v1/videos/${id}`
    for (const [method, path] of [
      ['GET', `${own}/content?dry=1`],
      ['GET', `${own}/content${search}&dry=1`],
      ['GET', `${own}?dry=1`],
      ['DELETE', `${own}?dry=1`],
      ['GET', `${TASKS}/${id}?dry=1`],
      ['DELETE', `${TASKS}/${id}?dry=1`],
    ] as const) {
      const response = await gateway.send(method, path)
      const { code, param } = await errorOf(response)
      assert.deepEqual([response.status, code, param], [400, 'invalid_request', 'dry'], `${method} ${path}`)
    }
    assert.equal(upstream.requests.length, asked)
  })

  it('is no page of the gateway, whatever the line calls it', async (t) => {
    const { upstream, gateway, id } = await finishedVideo(t, 'ark')
    for (const type of ['text/html', 'image/svg+xml', 'IMAGE/SVG+XML; charset=utf-8']) {
      upstream.script = (req, res) => {
        if (!req.path.startsWith('/files/')) return false
        res.writeHead(200, { 'content-type': type }).end('<script>')
        return true
      }
      const response = await gateway.send('GET', `/v1/videos/${id}/content`)
      assert.equal(response.headers.get('content-type'), 'application/octet-stream')
    }
  })
})
