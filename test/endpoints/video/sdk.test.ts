import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import OpenAI, { toFile } from 'openai'
import { OTHER_KEY, startVideoGateway, videoUpstreamFor } from '../../support/video-gateway.ts'
import { OPENAI_VIDEO, VIDEO_PROTOCOLS } from '../../support/video-protocols.ts'

const PICTURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0xff, 0x0d, 0x0a])

describe('the official OpenAI client', () => {
  for (const line of VIDEO_PROTOCOLS) {
    it(`creates, retrieves, lists, downloads and deletes videos on a line of the kind ${line.kind}`, async (t) => {
      const upstream = await videoUpstreamFor(t)
      const { sdk } = await startVideoGateway(t, { lines: [{ kind: line.kind, url: upstream.url }] })
      const made = await sdk.videos.create({
        model: 'video',
        prompt: 'a cat',
        seconds: '8',
        size: '1280x720',
      })
      assert.equal(made.object, 'video')
      assert.equal(made.status, 'queued')
      assert.deepEqual([made.seconds, made.size, made.model], ['8', '1280x720', 'video'])
      assert.ok(Math.abs(made.created_at * 1000 - Date.now()) < 60_000)
      const { created } = upstream.last
      if (line.kind === 'openai') assert.deepEqual([created.seconds, created.size], ['8', '1280x720'])
      else assert.deepEqual([created.duration, created.resolution, created.ratio], [8, '720p', '16:9'])

      upstream.last.status = line.words.running
      upstream.last.told = { progress: 40 }
      const running = await sdk.videos.retrieve(made.id)
      assert.equal(running.status, 'in_progress')
      if (line.kind === 'openai') assert.equal(running.progress, 40)
      upstream.last.status = line.words.succeeded
      const finished = await sdk.videos.retrieve(made.id)
      assert.equal(finished.status, 'completed')
      assert.equal(finished.progress, 100)
      assert.ok(finished.completed_at !== null)

      const page = await sdk.videos.list({ limit: 5 })
      assert.deepEqual(
        page.data.map(({ id }) => id),
        [made.id],
      )
      const content = await sdk.videos.downloadContent(made.id)
      assert.deepEqual(Buffer.from(await content.arrayBuffer()), upstream.content)

      const deleted = await sdk.videos.delete(made.id)
      assert.deepEqual(deleted, { id: made.id, object: 'video.deleted', deleted: true })
      await assert.rejects(sdk.videos.retrieve(made.id), OpenAI.NotFoundError)
    })

    it(`sends a picture to a line of the kind ${line.kind}, byte for byte`, async (t) => {
      const upstream = await videoUpstreamFor(t)
      const { sdk } = await startVideoGateway(t, { lines: [{ kind: line.kind, url: upstream.url }] })
      const picture = await toFile(PICTURE, 'cat.png', { type: 'image/png' })
      await sdk.videos.create({ model: 'video', prompt: 'it moves', input_reference: picture })
      const { created } = upstream.last
      if (line.kind === 'openai') {
        const file = created.input_reference as File
        assert.equal(file.type, 'image/png')
        assert.deepEqual(Buffer.from(await file.arrayBuffer()), PICTURE)
        return
      }
      assert.deepEqual((created.content as object[])[1], {
        type: 'image_url',
        image_url: { url: `data:image/png;base64,${PICTURE.toString('base64')}` },
        role: 'first_frame',
      })
    })

    it(`sends the address of a picture to a line of the kind ${line.kind}`, async (t) => {
      const upstream = await videoUpstreamFor(t)
      const { sdk } = await startVideoGateway(t, { lines: [{ kind: line.kind, url: upstream.url }] })
      const reference = { image_url: 'https://pictures.example.com/cat.png' }
      await sdk.videos.create({ model: 'video', prompt: 'it moves', input_reference: reference })
      const { created } = upstream.last
      if (line.kind === 'openai') assert.deepEqual(created.input_reference, reference)
      else
        assert.deepEqual((created.content as { image_url?: object }[])[1]?.image_url, {
          url: reference.image_url,
        })
    })
  }

  it('remixes a video where it was made', async (t) => {
    const [upstream, other] = [await videoUpstreamFor(t), await videoUpstreamFor(t)]
    const lines = [
      { kind: 'openai', url: other.url },
      { kind: 'openai', url: upstream.url },
    ] as const
    const gateway = await startVideoGateway(t, { lines })
    const headers = { 'x-gateway-provider': '{"only":["line-1"]}' }
    const source = await gateway.sdk.videos.create(
      { model: 'video', prompt: 'a cat', seconds: '8', size: '1280x720' },
      { headers },
    )
    await assert.rejects(gateway.sdk.videos.remix(source.id, { prompt: 'a dog' }), OpenAI.ConflictError)
    upstream.last.status = 'completed'
    const remix = await gateway.sdk.videos.remix(source.id, { prompt: 'a dog' })
    assert.notEqual(remix.id, source.id)
    assert.deepEqual([remix.remixed_from_video_id, remix.seconds, remix.size], [source.id, '8', '1280x720'])
    const sent = upstream.seen('POST').at(-1)
    assert.equal(sent?.path, '/v1/videos/up-1/remix')
    assert.deepEqual(sent?.body, { prompt: 'a dog' })
    assert.equal(other.requests.length, 0)
  })

  it('gets an error where a video on a task-style line is to be remixed', async (t) => {
    const upstream = await videoUpstreamFor(t)
    const { sdk } = await startVideoGateway(t, { lines: [{ kind: 'ark', url: upstream.url }] })
    const source = await sdk.videos.create({ model: 'video', prompt: 'a cat' })
    upstream.last.status = 'succeeded'
    await assert.rejects(sdk.videos.remix(source.id, { prompt: 'a dog' }), (error) => {
      assert.ok(error instanceof OpenAI.BadRequestError)
      assert.equal(error.code, 'unsupported_feature')
      return true
    })
    assert.equal(upstream.seen('POST').length, 1)
  })

  it('walks over all pages of a list, in either order', async (t) => {
    const upstream = await videoUpstreamFor(t)
    const { sdk } = await startVideoGateway(t, { lines: [{ kind: 'openai', url: upstream.url }] })
    const made: string[] = []
    for (let i = 0; i < 5; i++) made.push((await sdk.videos.create({ model: 'video', prompt: `${i}` })).id)
    const all = async (order: 'asc' | 'desc'): Promise<string[]> => {
      const ids: string[] = []
      for await (const { id } of sdk.videos.list({ limit: 2, order })) ids.push(id)
      return ids
    }
    assert.deepEqual(await all('asc'), made.toSorted())
    assert.deepEqual(await all('desc'), made.toSorted().reverse())
  })

  it('gets its error classes', async (t) => {
    const upstream = await videoUpstreamFor(t)
    const { sdk, url } = await startVideoGateway(t, { lines: [{ kind: 'openai', url: upstream.url }] })
    const stranger = new OpenAI({ apiKey: 'sk-nobody', baseURL: `${url}/v1`, maxRetries: 0 })
    await assert.rejects(stranger.videos.list(), OpenAI.AuthenticationError)
    await assert.rejects(stranger.videos.create({ model: 'video', prompt: 'x' }), OpenAI.AuthenticationError)
    await assert.rejects(sdk.videos.create({ model: 'nothing', prompt: 'x' }), OpenAI.NotFoundError)
    await assert.rejects(sdk.videos.create({ model: 'video', prompt: '' }), OpenAI.BadRequestError)
    assert.equal(upstream.requests.length, 0)
  })
})

describe('the other account', () => {
  it('knows nothing of a video, whatever it tries', async (t) => {
    const upstream = await videoUpstreamFor(t)
    const gateway = await startVideoGateway(t, { lines: [{ kind: 'openai', url: upstream.url }] })
    const { id } = await gateway.sdk.videos.create({ model: 'video', prompt: 'a cat' })
    const asked = upstream.requests.length
    const headers = { authorization: `Bearer ${OTHER_KEY}` }
    for (const { path } of VIDEO_PROTOCOLS) {
      for (const method of ['GET', 'DELETE'])
        assert.equal((await gateway.send(method, `${path}/${id}`, undefined, headers)).status, 404)
    }
    assert.equal((await gateway.send('GET', `/v1/videos/${id}/content`, undefined, headers)).status, 404)
    const remix = await gateway.send('POST', `/v1/videos/${id}/remix`, { prompt: 'x' }, headers)
    assert.equal(remix.status, 404)
    const list = await gateway.send('GET', OPENAI_VIDEO.path, undefined, headers)
    assert.deepEqual(await list.json(), {
      object: 'list',
      data: [],
      first_id: null,
      last_id: null,
      has_more: false,
    })
    assert.equal(upstream.requests.length, asked)
  })
})
