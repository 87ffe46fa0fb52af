import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { startVideoGateway, videoUpstreamFor } from '../../../support/video-gateway.ts'
import { assertTakenBack, createTask, errorOf, PAIRINGS, readTask } from '../../../support/video-protocols.ts'

describe('the life of a video, of either protocol on a line of either kind', () => {
  for (const { caller, line } of PAIRINGS) {
    const name = `${caller.kind} caller, ${line.kind} line`

    it(`${name}: queued, running, succeeded, fetched, deleted; charged once`, async (t) => {
      const upstream = await videoUpstreamFor(t)
      const gateway = await startVideoGateway(t, { lines: [{ kind: line.kind, url: upstream.url }] })
      const created = await gateway.send('POST', caller.path, caller.body())
      assert.equal(created.status, 200)
      const { id } = (await created.json()) as { id: string }
      assert.match(id, /^video_[0-9a-z]+$/)
      const { last } = upstream
      assert.equal(last.created.model, 'upstream-video-0')
      assert.equal(upstream.requests[0]?.headers.authorization, 'Bearer upstream-key-0')
      const held = (await gateway.money()).leased
      assert.ok(held > 0n)
      assert.equal((await gateway.entry(created)).billing?.charged, null)

      assert.equal((await readTask(gateway, caller, id)).status, caller.words.queued)
      last.status = line.words.running
      assert.equal((await readTask(gateway, caller, id)).status, caller.words.running)
      last.status = 'something the line made up'
      assert.equal((await readTask(gateway, caller, id)).status, caller.words.running)
      last.status = line.words.succeeded
      last.told = line.kind === 'ark' ? { duration: 6 } : { seconds: '6' }
      const finished = await readTask(gateway, caller, id)
      assert.equal(finished.status, caller.words.succeeded)
      assert.deepEqual(await gateway.money(), { spent: 600_000_000n, leased: 0n })

      const content = await gateway.send('GET', `/v1/videos/${id}/content`)
      assert.equal(content.status, 200)
      assert.equal(content.headers.get('content-type'), 'video/mp4')
      assert.equal(content.headers.get('set-cookie'), null)
      assert.deepEqual(Buffer.from(await content.arrayBuffer()), upstream.content)

      const entry = await gateway.entry(created)
      assert.equal(entry.billing?.charged, '0.6')
      assert.equal(entry.usage?.seconds, 6)
      assert.equal(entry.routing?.attempts[0]?.outcome, 'completed')
      assert.equal(entry.model, 'video')

      assert.equal((await gateway.send('DELETE', `${caller.path}/${id}`)).status, 200)
      assert.equal(upstream.tasks.size, 0)
      const gone = await gateway.send('GET', `${caller.path}/${id}`)
      assert.equal(gone.status, 404)
      assert.equal((await errorOf(gone)).code, 'not_found')
      assert.deepEqual(await gateway.money(), { spent: 600_000_000n, leased: 0n })
    })

    it(`${name}: fails, and is not charged`, async (t) => {
      const upstream = await videoUpstreamFor(t)
      const gateway = await startVideoGateway(t, { lines: [{ kind: line.kind, url: upstream.url }] })
      const id = await createTask(gateway, caller)
      upstream.last.status = line.words.failed
      upstream.last.told = { error: { code: 'internal', message: 'GPU 7 of rack 3 is on fire' } }
      const failed = await readTask(gateway, caller, id)
      assert.equal(failed.status, caller.words.failed)
      assert.equal((failed.error as { code: string }).code, 'upstream_error')
      assert.ok(!JSON.stringify(failed).includes('rack'))
      assert.deepEqual(await gateway.money(), { spent: 0n, leased: 0n })
      assert.equal((await gateway.send('GET', `/v1/videos/${id}/content`)).status, 404)
    })

    it(`${name}: cancelled while it waits`, async (t) => {
      const upstream = await videoUpstreamFor(t)
      const gateway = await startVideoGateway(t, { lines: [{ kind: line.kind, url: upstream.url }] })
      const id = await createTask(gateway, caller)
      assert.equal((await gateway.send('DELETE', `${caller.path}/${id}`)).status, 200)
      assert.equal(upstream.seen('DELETE').length, 1)
      await assertTakenBack(gateway, caller, id)
      assert.deepEqual(await gateway.money(), { spent: 0n, leased: 0n })
    })

    it(`${name}: not cancelled while it runs`, async (t) => {
      const upstream = await videoUpstreamFor(t)
      const gateway = await startVideoGateway(t, { lines: [{ kind: line.kind, url: upstream.url }] })
      const id = await createTask(gateway, caller)
      upstream.last.status = line.words.running
      const refused = await gateway.send('DELETE', `${caller.path}/${id}`)
      assert.equal(refused.status, 409)
      assert.equal(refused.headers.get('x-should-retry'), 'false')
      assert.equal((await errorOf(refused)).code, 'conflict')
      assert.equal(upstream.seen('DELETE').length, 0)
      assert.equal((await readTask(gateway, caller, id)).status, caller.words.running)
      assert.ok((await gateway.money()).leased > 0n)
    })
  }
})
