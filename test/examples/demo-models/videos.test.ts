import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { makeMp4 } from '../../../examples/gateway/demo-models/mp4.ts'
import { type DemoModels, startDemoModels } from '../../../examples/gateway/demo-models/server.ts'
import { cleaningUp } from '../../support/clean-up.ts'

const TASKS = '/api/v3/contents/generations/tasks'

interface Box {
  readonly type: string
  readonly at: number
  readonly content: Buffer
}

/** The boxes of an MP4, or of a box, in their order. */
function boxesOf(bytes: Buffer): Box[] {
  const boxes: Box[] = []
  for (let at = 0; at < bytes.length; ) {
    const size = bytes.readUInt32BE(at)
    assert.ok(size >= 8 && at + size <= bytes.length, `a box at ${at} of ${size} bytes`)
    boxes.push({
      type: bytes.toString('latin1', at + 4, at + 8),
      at,
      content: bytes.subarray(at + 8, at + size),
    })
    at += size
  }
  return boxes
}

const inside = (bytes: Buffer, ...path: string[]): Buffer =>
  path.reduce(
    (content, type) => boxesOf(content).find((box) => box.type === type)?.content ?? Buffer.alloc(0),
    bytes,
  )

describe('a video of the demo', () => {
  it('is an MP4 whose pictures are where it says', () => {
    const bytes = makeMp4(3, 1)
    const boxes = boxesOf(bytes)
    assert.deepEqual(
      boxes.map(({ type }) => type),
      ['ftyp', 'moov', 'mdat'],
    )
    const header = inside(bytes, 'moov', 'mvhd')
    assert.equal(header.readUInt32BE(16) / header.readUInt32BE(12), 3)
    const table = inside(bytes, 'moov', 'trak', 'mdia', 'minf', 'stbl')
    const offset = inside(table, 'stco').readUInt32BE(8)
    assert.equal(offset, (boxes[2]?.at ?? 0) + 8)
    const sizes = inside(table, 'stsz')
    let at = offset
    for (let i = 0; i < sizes.readUInt32BE(8); i++) {
      const size = sizes.readUInt32BE(12 + 4 * i)
      assert.equal(bytes.readUInt32BE(at), size - 4, 'one unit, as long as its sample')
      assert.equal(bytes[at + 4], 0x65, 'a picture that needs no other')
      at += size
    }
    assert.equal(at, bytes.length)
  })
})

describe('the videos of the demo model server', () => {
  let demo: DemoModels
  const headers = { authorization: 'Bearer x', 'content-type': 'application/json' }
  const ask = async (method: string, path: string, body?: object) => {
    const response = await fetch(demo.url + path, {
      method,
      headers,
      ...(body && { body: JSON.stringify(body) }),
    })
    return { status: response.status, json: (await response.json()) as Record<string, unknown> }
  }
  const statusOf = async (path: string, wanted: string) => {
    for (let tries = 0; tries < 500; tries++) {
      const { json } = await ask('GET', path)
      if (json.status === wanted) return json
      await pause(5)
    }
    return assert.fail(`never ${wanted}`)
  }
  const cleanUp = cleaningUp()
  before(async () => {
    demo = await startDemoModels({ videoPace: { waitMs: 150, makeMs: 150 } })
    cleanUp.after(() => demo.close())
  })

  it('OpenAI-style: wait, are made, can be fetched, and are deleted', async () => {
    const { json: made } = await ask('POST', '/v1/videos', {
      model: 'demo-video',
      prompt: 'waves',
      seconds: '2',
    })
    assert.equal(made.status, 'queued')
    await statusOf(`/v1/videos/${made.id}`, 'in_progress')
    assert.equal((await ask('DELETE', `/v1/videos/${made.id}`)).status, 400)
    await statusOf(`/v1/videos/${made.id}`, 'completed')
    const content = await fetch(`${demo.url}/v1/videos/${made.id}/content`, {
      headers: { ...headers, range: 'bytes=4-7' },
    })
    assert.deepEqual([content.status, await content.text()], [206, 'ftyp'])
    assert.equal((await ask('DELETE', `/v1/videos/${made.id}`)).status, 200)
    assert.equal((await ask('GET', `/v1/videos/${made.id}`)).status, 404)
  })

  it('task-style: say where they can be fetched without a key, and fail when they are asked to', async () => {
    const body = (text: string) => ({ model: 'demo-video', content: [{ type: 'text', text }] })
    const { json: made } = await ask('POST', TASKS, body('waves --dur 2'))
    const done = await statusOf(`${TASKS}/${made.id}`, 'succeeded')
    assert.deepEqual([done.duration, done.usage], [2, { completion_tokens: 40_000, total_tokens: 40_000 }])
    const file = await fetch((done.content as { video_url: string }).video_url)
    assert.equal(file.headers.get('content-type'), 'video/mp4')
    assert.ok((await file.arrayBuffer()).byteLength > 1000)
    const { json: failing } = await ask('POST', TASKS, body('fail'))
    assert.ok((await statusOf(`${TASKS}/${failing.id}`, 'failed')).error)
  })

  it('take forms, and refuse what the real ones refuse', async () => {
    const form = new FormData()
    form.append('model', 'demo-video')
    form.append('prompt', 'waves')
    form.append('input_reference', new Blob([new Uint8Array(3)], { type: 'image/png' }), 'a.png')
    const { authorization } = headers
    const response = await fetch(`${demo.url}/v1/videos`, {
      method: 'POST',
      headers: { authorization },
      body: form,
    })
    assert.equal(response.status, 200)
    assert.equal((await ask('POST', '/v1/videos', { model: 'demo-chat', prompt: 'x' })).status, 404)
    assert.equal((await ask('POST', '/v1/videos', { model: 'demo-video' })).status, 400)
    assert.equal((await fetch(`${demo.url}/v1/videos/x`)).status, 401)
  })
})
