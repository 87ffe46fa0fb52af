import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { finishedVideo } from '../../support/finished-video.ts'
import type { VideoGateway } from '../../support/video-gateway.ts'
import { startVideoGateway, videoUpstreamFor } from '../../support/video-gateway.ts'
import { assertTakenBack, createTask, errorOf, VIDEO_PROTOCOLS } from '../../support/video-protocols.ts'
import { json } from '../../support/video-upstream.ts'

/** Line, upstream's name of the model, status and outcome of each attempt of a call. */
async function attemptsOf(gateway: VideoGateway, response: Response) {
  const { routing } = await gateway.entry(response)
  return routing?.attempts.map(({ line, upstream_model, upstream_status, outcome }) => [
    line,
    upstream_model,
    upstream_status,
    outcome,
  ])
}

for (const caller of VIDEO_PROTOCOLS) {
  describe(`the trace of a ${caller.kind} call`, () => {
    it('that reads contains what the line answered, also where the caller gets the last known state', async (t) => {
      const upstream = await videoUpstreamFor(t)
      const gateway = await startVideoGateway(t, { lines: [{ kind: caller.kind, url: upstream.url }] })
      const id = await createTask(gateway, caller)
      const good = await gateway.send('GET', `${caller.path}/${id}`)
      assert.deepEqual(await attemptsOf(gateway, good), [['line-0', 'upstream-video-0', 200, 'completed']])
      upstream.script = (_req, res) => {
        json(res, 500, { error: { message: 'no disk' } })
        return true
      }
      const stale = await gateway.send('GET', `${caller.path}/${id}`)
      assert.equal(stale.status, 200)
      assert.equal(((await stale.json()) as { status: string }).status, 'queued')
      assert.deepEqual(await attemptsOf(gateway, stale), [
        ['line-0', 'upstream-video-0', 500, 'upstream_error'],
      ])
    })

    it('that waits for what another asks contains the same exchange', async (t) => {
      const upstream = await videoUpstreamFor(t)
      const gateway = await startVideoGateway(t, { lines: [{ kind: caller.kind, url: upstream.url }] })
      const id = await createTask(gateway, caller)
      const answers = await Promise.all(
        Array.from({ length: 20 }, () => gateway.send('GET', `${caller.path}/${id}`)),
      )
      for (const answer of answers) {
        assert.equal(answer.status, 200)
        assert.deepEqual(await attemptsOf(gateway, answer), [
          ['line-0', 'upstream-video-0', 200, 'completed'],
        ])
      }
    })

    it('that cancels contains what the line refused with', async (t) => {
      const upstream = await videoUpstreamFor(t)
      const gateway = await startVideoGateway(t, { lines: [{ kind: caller.kind, url: upstream.url }] })
      const id = await createTask(gateway, caller)
      upstream.script = ({ method }, res) => {
        if (method === 'DELETE') json(res, 503, { error: { message: 'busy' } })
        return method === 'DELETE'
      }
      const response = await gateway.send('DELETE', `${caller.path}/${id}`)
      assert.equal((await errorOf(response)).code, 'upstream_overloaded')
      assert.deepEqual(await attemptsOf(gateway, response), [
        ['line-0', 'upstream-video-0', 200, 'completed'],
        ['line-0', 'upstream-video-0', 503, 'upstream_overloaded'],
      ])
    })

    it('that downloads contains what the line sent', async (t) => {
      const { upstream, gateway, id } = await finishedVideo(t, caller.kind)
      const whole = await gateway.send('GET', `/v1/videos/${id}/content`)
      await whole.arrayBuffer()
      assert.deepEqual((await attemptsOf(gateway, whole))?.at(-1), [
        'line-0',
        'upstream-video-0',
        200,
        'completed',
      ])
      upstream.script = ({ path }, res) => {
        const isContent = /content$|files/.test(path.split('?')[0] ?? '')
        if (isContent) json(res, 403, { error: { message: 'no' } })
        return isContent
      }
      const refused = await gateway.send('GET', `/v1/videos/${id}/content`)
      assert.equal((await errorOf(refused)).code, 'upstream_error')
      assert.deepEqual((await attemptsOf(gateway, refused))?.at(-1), [
        'line-0',
        'upstream-video-0',
        403,
        'upstream_error',
      ])
    })

    it('that two cancel at once is no error for either', async (t) => {
      const upstream = await videoUpstreamFor(t)
      const gateway = await startVideoGateway(t, { lines: [{ kind: caller.kind, url: upstream.url }] })
      const id = await createTask(gateway, caller)
      const answers = await Promise.all([1, 2].map(() => gateway.send('DELETE', `${caller.path}/${id}`)))
      assert.deepEqual(
        answers.map(({ status }) => status),
        [200, 200],
      )
      await assertTakenBack(gateway, caller, id)
      assert.deepEqual(await gateway.money(), { spent: 0n, leased: 0n })
    })
  })
}
