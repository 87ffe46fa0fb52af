import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { startVideoGateway, videoUpstreamFor } from '../../../support/video-gateway.ts'
import { ARK_VIDEO, createTask, errorOf, OPENAI_VIDEO } from '../../../support/video-protocols.ts'

const PNG = 'data:image/png;base64,iVBORw0KGgo='
const text = (said: string) => ({ type: 'text', text: said })
const image = (url: string, role?: string) => ({
  type: 'image_url',
  image_url: { url },
  ...(role && { role }),
})

describe('a request of an OpenAI-style caller on a task-style line', () => {
  const mapped: [string, Record<string, unknown>, Record<string, unknown>][] = [
    ['nothing: the defaults of its protocol', {}, { resolution: '720p', ratio: '9:16', duration: 4 }],
    ['seconds as a number', { seconds: 12 }, { duration: 12 }],
    ['a landscape', { size: '1920x1080' }, { resolution: '1080p', ratio: '16:9' }],
    ['a square', { size: '640x640' }, { resolution: '480p', ratio: '1:1' }],
  ]
  for (const [name, asked, sent] of mapped) {
    it(`${name}`, async (t) => {
      const upstream = await videoUpstreamFor(t)
      const gateway = await startVideoGateway(t, { lines: [{ kind: 'ark', url: upstream.url }] })
      await createTask(gateway, OPENAI_VIDEO, asked)
      const { created } = upstream.last
      for (const [member, value] of Object.entries(sent)) assert.deepEqual(created[member], value, member)
      assert.deepEqual(created.content, [text('a cat')])
      assert.deepEqual(
        [created.prompt, created.seconds, created.size, created.provider],
        [undefined, undefined, undefined, undefined],
      )
    })
  }

  it('a prompt that reads like flags stays a prompt', async (t) => {
    const upstream = await videoUpstreamFor(t)
    const gateway = await startVideoGateway(t, { lines: [{ kind: 'ark', url: upstream.url }] })
    await createTask(gateway, OPENAI_VIDEO, { prompt: 'a cat --dur 60 --resolution 1080p' })
    const [part] = upstream.last.created.content as [{ text: string }]
    assert.ok(!part.text.includes('--dur') && part.text.includes('dur 60'))
    assert.equal(upstream.last.created.duration, 4)
  })

  const unsupported: [string, Record<string, unknown>][] = [
    ['size', { size: '1024x1792' }],
    ['input_reference.file_id', { input_reference: { file_id: 'file_1' } }],
    ['style', { style: 'noir' }],
  ]
  for (const [param, asked] of unsupported) {
    it(`there are no words for ${param}`, async (t) => {
      const upstream = await videoUpstreamFor(t)
      const gateway = await startVideoGateway(t, { lines: [{ kind: 'ark', url: upstream.url }] })
      const response = await gateway.send('POST', '/v1/videos', OPENAI_VIDEO.body(asked))
      const error = await errorOf(response)
      assert.deepEqual([response.status, error.code, error.param], [400, 'unsupported_feature', param])
      assert.equal(upstream.requests.length, 0)
      assert.deepEqual(await gateway.money(), { spent: 0n, leased: 0n })
    })
  }

  it('a line that there are words for is chosen instead', async (t) => {
    const [ark, openai] = [await videoUpstreamFor(t), await videoUpstreamFor(t)]
    const lines = [
      { kind: 'ark', url: ark.url },
      { kind: 'openai', url: openai.url },
    ] as const
    const gateway = await startVideoGateway(t, { lines })
    const response = await gateway.send('POST', '/v1/videos', OPENAI_VIDEO.body({ size: '1024x1792' }))
    assert.equal(response.status, 200)
    assert.deepEqual([ark.requests.length, openai.seen('POST').length], [0, 1])
    const [eliminated] = (await gateway.entry(response)).routing?.eliminated ?? []
    assert.deepEqual([eliminated?.line, eliminated?.reason], ['line-0', 'feature'])
  })
})

describe('a request of a task-style caller on an OpenAI-style line', () => {
  const mapped: [string, Record<string, unknown>, Record<string, unknown>][] = [
    ['nothing', {}, { prompt: 'a cat' }],
    ['members', { resolution: '720p', ratio: '9:16', duration: 8 }, { size: '720x1280', seconds: '8' }],
    ['a ratio alone', { ratio: '16:9' }, { size: '1280x720' }],
    [
      'flags in the text',
      { content: [text('a cat --rs 720p --ratio 16:9 --dur 8')] },
      { prompt: 'a cat', size: '1280x720', seconds: '8' },
    ],
    [
      'a member over a flag',
      { content: [text('a cat --dur 8')], duration: 4 },
      { prompt: 'a cat', seconds: '4' },
    ],
    ['what changes nothing', { watermark: false, seed: -1, camera_fixed: false }, { prompt: 'a cat' }],
    [
      'a picture by its address',
      { content: [text('a cat'), image('https://pictures.example.com/1.png', 'first_frame')] },
      { input_reference: { image_url: 'https://pictures.example.com/1.png' } },
    ],
  ]
  for (const [name, asked, sent] of mapped) {
    it(`${name}`, async (t) => {
      const upstream = await videoUpstreamFor(t)
      const gateway = await startVideoGateway(t, { lines: [{ kind: 'openai', url: upstream.url }] })
      await createTask(gateway, ARK_VIDEO, asked)
      const { created } = upstream.last
      for (const [member, value] of Object.entries(sent)) assert.deepEqual(created[member], value, member)
      assert.equal(created.content, undefined)
    })
  }

  it('a picture in a data URL becomes a file', async (t) => {
    const upstream = await videoUpstreamFor(t)
    const gateway = await startVideoGateway(t, { lines: [{ kind: 'openai', url: upstream.url }] })
    await createTask(gateway, ARK_VIDEO, { content: [text('a cat'), image(PNG)] })
    const file = upstream.last.created.input_reference as File
    assert.equal(file.type, 'image/png')
    assert.equal(Buffer.from(await file.arrayBuffer()).toString('base64'), 'iVBORw0KGgo=')
  })

  const unsupported: [string, Record<string, unknown>][] = [
    ['resolution', { resolution: '4k' }],
    ['ratio', { ratio: 'adaptive' }],
    ['duration', { duration: -1 }],
    ['frames', { frames: 57 }],
    ['seed', { seed: 42 }],
    ['watermark', { content: [text('a cat --wm true')] }],
    ['camera_fixed', { camera_fixed: true }],
    ['callback_url', { callback_url: 'https://example.com/told' }],
    ['content[1]', { content: [text('a cat'), image(PNG, 'last_frame')] }],
    ['content[2]', { content: [text('a cat'), image(PNG), image(PNG)] }],
    ['content', { content: [image(PNG)] }],
    ['constructor', { constructor: 1 }],
    ['toString', { toString: false }],
    ['__proto__', { ['__proto__']: [1] }],
  ]
  for (const [param, asked] of unsupported) {
    it(`there are no words for ${param} in ${JSON.stringify(asked).slice(0, 40)}`, async (t) => {
      const upstream = await videoUpstreamFor(t)
      const gateway = await startVideoGateway(t, { lines: [{ kind: 'openai', url: upstream.url }] })
      const response = await gateway.send('POST', ARK_VIDEO.path, ARK_VIDEO.body(asked))
      const error = await errorOf(response)
      assert.deepEqual([response.status, error.code, error.param], [400, 'unsupported_feature', param])
      assert.equal(upstream.requests.length, 0)
    })
  }
})

describe('the body for a line of the same protocol', () => {
  it('task-style: all but the model, the provider constraint, and members that would reveal the line', async (t) => {
    const upstream = await videoUpstreamFor(t)
    const gateway = await startVideoGateway(t, { lines: [{ kind: 'ark', url: upstream.url }] })
    const content = [text('a cat --dur 7'), image(PNG, 'first_frame'), image(PNG, 'last_frame')]
    const asked = { content, seed: 42, watermark: true, ratio: 'adaptive', something: { new: [1] } }
    await createTask(gateway, ARK_VIDEO, { ...asked, provider: { only: ['line-0'] } })
    assert.deepEqual(upstream.last.created, { model: 'upstream-video-0', ...asked })
    for (const telling of [{ callback_url: 'https://example.com' }, { return_last_frame: true }]) {
      const response = await gateway.send('POST', ARK_VIDEO.path, ARK_VIDEO.body(telling))
      assert.equal((await errorOf(response)).param, Object.keys(telling)[0])
    }
    assert.equal(upstream.seen('POST').length, 1)
  })

  it('OpenAI-style: all but the model and the provider constraint', async (t) => {
    const upstream = await videoUpstreamFor(t)
    const gateway = await startVideoGateway(t, { lines: [{ kind: 'openai', url: upstream.url }] })
    const asked = { prompt: 'a cat --dur 7', size: '1024x1792', style: 'noir' }
    await createTask(gateway, OPENAI_VIDEO, { ...asked, provider: { only: ['line-0'] } })
    assert.deepEqual(upstream.last.created, { model: 'upstream-video-0', ...asked })
  })
})
