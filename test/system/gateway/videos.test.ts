import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import OpenAI from 'openai'
import { cleaningUp } from '../../support/clean-up.ts'
import { type GatewayProcess, startGatewayProcess } from '../../support/gateway-process.ts'

const TASKS = '/api/v3/contents/generations/tasks'
const headers = { authorization: 'Bearer sk-demo', 'content-type': 'application/json' }

describe('the videos of the assembled gateway, on the demo models', () => {
  let gateway: GatewayProcess
  const cleanUp = cleaningUp()
  before(async () => {
    gateway = await startGatewayProcess()
    cleanUp.after(() => gateway.stop())
  })

  const json = async (path: string, init: RequestInit = {}) => {
    const response = await fetch(gateway.url + path, { headers, ...init })
    return { response, body: (await response.json()) as Record<string, unknown> }
  }

  it('are made, fetched and paid for, OpenAI-style', async () => {
    const sdk = new OpenAI({ apiKey: 'sk-demo', baseURL: `${gateway.url}/v1`, maxRetries: 0 })
    const { data: made, response } = await sdk.videos
      .create({ model: 'video-small', prompt: 'waves', seconds: '4' })
      .withResponse()
    let video = made
    while (video.status !== 'completed') {
      assert.notEqual(video.status, 'failed')
      await pause(50)
      video = await sdk.videos.retrieve(made.id)
    }
    const content = Buffer.from(await (await sdk.videos.downloadContent(made.id)).arrayBuffer())
    assert.equal(content.toString('latin1', 4, 8), 'ftyp')
    const { body } = await json(`/v1/calls/${response.headers.get('x-request-id')}`)
    assert.equal((body.billing as { charged: string }).charged, '0.4')
  })

  it('are made, fetched and paid for, task-style, by tokens', async () => {
    const content = [{ type: 'text', text: 'waves' }]
    const asked = { model: 'video-tasks', content, duration: 2 }
    const { response, body: made } = await json(TASKS, { method: 'POST', body: JSON.stringify(asked) })
    assert.equal(response.status, 200)
    let task = made
    while (task.status !== 'succeeded') {
      assert.notEqual(task.status, 'failed')
      await pause(50)
      task = (await json(`${TASKS}/${made.id}`)).body
    }
    const { video_url: address } = task.content as { video_url: string }
    assert.ok(address.startsWith(gateway.url))
    assert.equal((await fetch(address)).headers.get('content-type'), 'video/mp4')
    const { body } = await json(`/v1/calls/${response.headers.get('x-request-id')}`)
    assert.equal((body.billing as { charged: string }).charged, '0.1')
    assert.equal((await json(`${TASKS}/${made.id}`, { method: 'DELETE' })).response.status, 200)
    assert.equal((await json(`${TASKS}/${made.id}`)).response.status, 404)
  })
})
