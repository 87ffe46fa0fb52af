import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { UrlSigner } from '../../../../lib/endpoints/video/content/signed-url.ts'
import { finishedVideo, SECRET } from '../../../support/finished-video.ts'
import { startVideoGateway, type VideoGateway, videoUpstreamFor } from '../../../support/video-gateway.ts'
import {
  ARK_VIDEO,
  createTask,
  errorOf,
  OPENAI_VIDEO,
  readTask,
  VIDEO_PROTOCOLS,
  type VideoProtocol,
} from '../../../support/video-protocols.ts'

describe('the signed address that a task-style caller gets', () => {
  const addressOf = async (gateway: VideoGateway, caller: VideoProtocol, id: string): Promise<string> => {
    const { content } = await readTask(gateway, caller, id)
    return (content as { video_url: string }).video_url
  }

  for (const { kind } of VIDEO_PROTOCOLS) {
    it(`${kind} line: is the gateway's own, and works without a key`, async (t) => {
      const { upstream, gateway, id } = await finishedVideo(t, kind)
      const address = await addressOf(gateway, ARK_VIDEO, id)
      assert.ok(address.startsWith(`${gateway.url}/v1/videos/${id}/content?`), address)
      const response = await fetch(address, { headers: { range: 'bytes=0-3' } })
      assert.equal(response.status, 206)
      assert.deepEqual(Buffer.from(await response.arrayBuffer()), upstream.content.subarray(0, 4))
      const entry = await gateway.entry(response)
      assert.deepEqual([entry.account, entry.model], ['acme', 'video'])
    })
  }

  it('is good as long as it may be made for at most, and none is made for longer', async (t) => {
    const longest = 3_155_760_000_000
    const upstream = await videoUpstreamFor(t)
    const lines = [{ kind: 'openai' as const, url: upstream.url }]
    const gateway = await startVideoGateway(t, { lines, video: { signedForMs: longest } })
    const id = await createTask(gateway, OPENAI_VIDEO)
    upstream.last.status = 'completed'
    assert.equal((await fetch(await addressOf(gateway, ARK_VIDEO, id))).status, 200)
    const longer = startVideoGateway(t, { lines, video: { signedForMs: longest + 1 } })
    await assert.rejects(longer, /"signedForMs" must be from 1000 to /)
  })

  it('is good for one video and until its time', async (t) => {
    const { upstream, gateway, id } = await finishedVideo(t, 'openai')
    const other = await createTask(gateway, OPENAI_VIDEO)
    const address = new URL(await addressOf(gateway, ARK_VIDEO, id))
    const asked = upstream.requests.length
    const variants: [string, string][] = [
      ['another video', address.href.replace(id, other)],
      ['a later time', address.href.replace(/expires=\d+/, 'expires=99999999999')],
      ['another signature', address.href.replace(/signature=.{6}/, 'signature=AAAAAA')],
      ['no signature', address.href.replace(/signature=.*/, 'signature=')],
      ['two of them', `${address.href}&signature=x`],
      [
        'a time that is over',
        `${address.origin}${address.pathname}?${new UrlSigner([SECRET], 1000).queryFor(id, Date.now() - 5000)}`,
      ],
      [
        'another secret',
        `${address.origin}${address.pathname}?${new UrlSigner(['another secret, as long'], 10_000).queryFor(id, Date.now())}`,
      ],
    ]
    for (const [name, url] of variants) {
      const response = await fetch(url)
      assert.equal(response.status, 401, name)
      assert.equal((await errorOf(response)).code, 'invalid_credential', name)
    }
    assert.equal(upstream.requests.length, asked)
  })

  it('opens nothing but the content, and without one a key is needed', async (t) => {
    const { gateway, id } = await finishedVideo(t, 'openai')
    const { search } = new URL(await addressOf(gateway, ARK_VIDEO, id))
    assert.equal((await fetch(`${gateway.url}/v1/videos/${id}${search}`)).status, 401)
    assert.equal(
      (await fetch(`${gateway.url}/v1/videos/${id}/content${search}`, { method: 'DELETE' })).status,
      401,
    )
    assert.equal((await fetch(`${gateway.url}/v1/videos/${id}/content`)).status, 401)
  })

  it('is the host that the caller asked, as a trusted proxy reports it', async (t) => {
    const upstream = await videoUpstreamFor(t)
    const gateway = await startVideoGateway(t, {
      lines: [{ kind: 'openai', url: upstream.url }],
      config: { trustProxy: true },
    })
    const id = await createTask(gateway, ARK_VIDEO)
    upstream.last.status = 'completed'
    const response = await gateway.send('GET', `${ARK_VIDEO.path}/${id}`, undefined, {
      'x-forwarded-proto': 'https',
      'x-forwarded-host': 'models.example.com',
    })
    const { content } = (await response.json()) as { content: { video_url: string } }
    assert.ok(content.video_url.startsWith(`https://models.example.com/v1/videos/${id}/content?`))
  })
})
