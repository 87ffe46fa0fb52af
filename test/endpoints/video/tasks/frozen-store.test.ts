import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { until } from '../../../support/until.ts'
import { startVideoGateway, videoUpstreamFor } from '../../../support/video-gateway.ts'
import { createTask, errorOf, OPENAI_VIDEO, VIDEO_PROTOCOLS } from '../../../support/video-protocols.ts'
import { json } from '../../../support/video-upstream.ts'

const NEVER = new Promise<never>(() => {})

describe('a store that does not answer', { concurrency: true }, () => {
  for (const caller of VIDEO_PROTOCOLS) {
    it(`${caller.kind}: a create is refused, nothing is sent, and what is committed late is withdrawn`, async (t) => {
      const upstream = await videoUpstreamFor(t)
      const gateway = await startVideoGateway(t, { lines: [{ kind: caller.kind, url: upstream.url }] })
      const { tasks } = gateway
      const intend = tasks.intend.bind(tasks)
      let thaw = (): void => {}
      tasks.intend = async (intent) => {
        await new Promise<void>((resolve) => {
          thaw = resolve
        })
        return intend(intent)
      }
      const withdrawn: string[] = []
      const withdraw = tasks.withdraw.bind(tasks)
      tasks.withdraw = async (id) => {
        await withdraw(id)
        withdrawn.push(id)
      }
      const response = await gateway.send('POST', caller.path, caller.body())
      assert.equal((await errorOf(response)).code, 'billing_unavailable')
      assert.equal(upstream.requests.length, 0)
      assert.deepEqual(withdrawn, [], 'not before the intent, which would stay')
      thaw()
      await until(() => withdrawn.length === 1, 'the withdrawal')
      assert.deepEqual(await gateway.money(), { spent: 0n, leased: 0n })
      assert.equal(await tasks.count({}), 0)
    })

    it(`${caller.kind}: reads, lists, cancels and downloads are refused`, async (t) => {
      const upstream = await videoUpstreamFor(t)
      const gateway = await startVideoGateway(t, { lines: [{ kind: caller.kind, url: upstream.url }] })
      const id = await createTask(gateway, caller)
      gateway.tasks.find = () => NEVER
      gateway.tasks.list = () => NEVER
      const asked = upstream.requests.length
      const refused = await Promise.all([
        gateway.send('GET', `${caller.path}/${id}`),
        gateway.send('GET', caller.path),
        gateway.send('DELETE', `${caller.path}/${id}`),
        gateway.send('GET', `/v1/videos/${id}/content`),
      ])
      for (const response of refused) {
        assert.equal(response.status, 500)
        assert.equal((await errorOf(response)).code, 'internal_error')
      }
      assert.equal(upstream.requests.length, asked)
    })
  }
})

describe('an id that no database takes', () => {
  it('is none: the outcome of the create is unknown', async (t) => {
    const upstream = await videoUpstreamFor(t)
    upstream.script = (_req, res) => {
      json(res, 200, { id: 'up\u0000stream', object: 'video', status: 'queued' })
      return true
    }
    const gateway = await startVideoGateway(t, { lines: [{ kind: 'openai', url: upstream.url }] })
    const response = await gateway.send('POST', OPENAI_VIDEO.path, OPENAI_VIDEO.body())
    assert.equal((await errorOf(response)).code, 'upstream_error')
    assert.equal(await gateway.tasks.count({ states: ['unresolved'] }), 1)
  })

  it('is refused where a caller asks for it', async (t) => {
    const { url } = await videoUpstreamFor(t)
    const gateway = await startVideoGateway(t, { lines: [{ kind: 'openai', url }] })
    for (const query of ['/v1/videos?after=%00', `${VIDEO_PROTOCOLS[1]?.path}?filter.model=%00`]) {
      const response = await gateway.send('GET', query)
      assert.equal(response.status, 400)
      assert.equal((await errorOf(response)).code, 'invalid_request')
    }
  })
})
