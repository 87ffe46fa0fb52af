import assert from 'node:assert/strict'
import { rm } from 'node:fs/promises'
import { before, describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { cleaningUp } from '../../support/clean-up.ts'
import { until, untilAsync } from '../../support/until.ts'
import { type Asked, askedChat, keepAliveLoad } from './keep-alive-load.ts'
import {
  CONNECTIONS,
  PLACE_NAMES,
  ROOT_TOKEN,
  type RotatingGateway,
  replace,
  SIGNING,
  startRotatingGateway,
} from './rotating-gateway.ts'

const cleanUp = cleaningUp()
let server: RotatingGateway
before(async () => {
  server = await startRotatingGateway(cleanUp)
})

describe('under constant traffic on two workers, no request fails while there is a new', () => {
  for (const place of PLACE_NAMES)
    it(`key of a provider: ${place}`, async (t) => {
      const { gateway, upstream, good } = server
      const next = `second-of-${place}`
      const load = keepAliveLoad(t, gateway.url, [askedChat(place)], CONNECTIONS)
      await load.more(30)
      good.add(`Bearer ${next}`)
      await server.putKey(place, next)
      const latest = () => upstream.requests.slice(-300).map(({ headers }) => headers.authorization)
      // Each worker has many of them.
      await until(() => latest().every((key) => key === `Bearer ${next}`), 'the new key in both workers')
      good.delete(`Bearer first-of-${place}`)
      await load.more(60)
      await load.stop()
      assert.deepEqual(load.failures, [])
      assert.equal(server.times('config not reloaded; the running config stays in effect'), 0)
    })

  it('API key, whose old secret ends with the overlap', async (t) => {
    const made = await server.ask<{ id: string; secret: string }>('POST', '/admin/keys', { account: 'demo' })
    const by = (secret: string): Asked => ({
      ...askedChat('env-file'),
      headers: { ...askedChat().headers, authorization: `Bearer ${secret}` },
    })
    const asked = [by(made.secret)]
    const load = keepAliveLoad(t, server.gateway.url, asked, CONNECTIONS)
    await load.more(30)
    const { secret } = await server.ask<{ secret: string }>('POST', `/admin/keys/${made.id}/rotate`, {
      overlap_seconds: 3,
    })
    asked.push(by(secret))
    await load.more(60)
    asked.shift()
    await load.more(30)
    await server.untilRefused('/v1/models', made.secret)
    await load.more(30)
    await load.stop()
    assert.deepEqual(load.failures, [])
  })

  it("operator's token, whose old one ends with the overlap", async (t) => {
    const made = await server.ask<{ id: string; token: string }>('POST', '/admin/operators', {
      name: 'Ada',
      role: 'viewer',
    })
    const read = { path: '/admin/accounts', token: made.token }
    const load = server.steadyReads(t, read)
    await load.more(30)
    const { token } = await server.ask<{ token: string }>('POST', `/admin/operators/${made.id}/rotate`, {
      overlap_seconds: 2,
    })
    await load.more(30)
    read.token = token
    await server.untilRefused('/admin/accounts', made.token)
    await load.more(30)
    await load.stop()
    assert.deepEqual(load.failures, [])
  })

  it('ADMIN_TOKEN in its file, which may hold the old one too', async (t) => {
    const next = 'another-token-of-the-tests'
    const read = { path: '/admin/accounts', token: ROOT_TOKEN }
    const load = server.steadyReads(t, read)
    await load.more(20)
    await replace(server.at('admin-token'), `${next}\n${ROOT_TOKEN}\n`)
    await sleep(1500)
    read.token = next
    await load.more(20)
    await replace(server.at('admin-token'), next)
    await server.untilRefused('/admin/accounts', ROOT_TOKEN)
    await replace(server.at('admin-token'), 'short')
    await sleep(1500)
    await load.more(20)
    await rm(server.at('admin-token'))
    await sleep(1500)
    await load.more(20)
    await replace(server.at('admin-token'), `${ROOT_TOKEN} ${next}`)
    await sleep(1500)
    read.token = ROOT_TOKEN
    await load.more(20)
    await load.stop()
    assert.deepEqual(load.failures, [])
    const told = server.gateway.logged
      .filter(({ msg }) => msg === 'a secret cannot be used; the previous value stays in effect')
      .map(({ fault }) => fault)
    assert.match(String(told[0]), /^ADMIN_TOKEN: the file must hold tokens of at least 16 /)
    assert.ok(!server.gateway.stdout.includes(next) && !server.gateway.stdout.includes(ROOT_TOKEN))
  })

  it('urlSigningSecret, listed behind the old one first', async (t) => {
    const task = await server.ask<{ id: string }>(
      'POST',
      '/v1/videos',
      { model: 'clip', prompt: 'x' },
      'sk-demo',
    )
    for (const each of server.video.tasks.values()) Object.assign(each, { status: 'completed' })
    const path = `/api/v3/contents/generations/tasks/${task.id}`
    const addressOf = async () => {
      const { content } = await server.ask<{ content?: { video_url: string } }>(
        'GET',
        path,
        undefined,
        'sk-demo',
      )
      return content?.video_url ?? ''
    }
    await untilAsync(async () => (await addressOf()) !== '', 'the video')
    const former = await addressOf()
    const failures: string[] = []
    let stopped = false
    const running = Array.from({ length: 4 }, async () => {
      while (!stopped) {
        for (const address of [former, await addressOf()]) {
          const { status, body } = await fetch(address, { headers: { range: 'bytes=0-3' } })
          await body?.cancel()
          if (status !== 206) failures.push(`${status} ${address}`)
        }
        // Without a pause, a fast machine looks up more often than a key may.
        await sleep(50)
      }
    })
    t.after(() => {
      stopped = true
    })
    const [old, now] = SIGNING
    await server.use({ urlSigningSecret: [old, now] })
    await sleep(500)
    await server.use({ urlSigningSecret: [now, old] })
    await sleep(500)
    stopped = true
    await Promise.all(running)
    assert.deepEqual(failures, [])
    const latest = await addressOf()
    await server.use({ urlSigningSecret: now })
    await untilAsync(async () => {
      const statuses = await Promise.all(
        Array.from({ length: CONNECTIONS }, async () => (await fetch(former)).status),
      )
      return statuses.every((status) => status === 401)
    }, 'the end of the old secret')
    assert.equal((await fetch(latest)).status, 200)
  })
})

describe('a new secret of an API key in its file', () => {
  it('is logged where the database rules, and in force where the config does', async () => {
    const of = async (secret: string) => [...new Set(await server.statusesOf('/v1/models', secret))]
    assert.deepEqual(await of('sk-of-a-file-1'), [200])
    await replace(server.at('caller'), 'sk-of-a-file-2')
    const told = () =>
      server.gateway.logged.filter(({ msg, id }) => msg === 'config and database differ' && id === 'filed')
    await until(() => told().length > 0, 'the warning')
    assert.deepEqual([told().length, told()[0]?.members], [1, ['secret']])
    const { data } = await server.ask<{ data: object[] }>('GET', '/admin/drift')
    assert.deepEqual(data, [
      { object: 'difference', kind: 'key', id: 'filed', difference: 'changed', members: ['secret'] },
    ])
    assert.deepEqual([await of('sk-of-a-file-1'), await of('sk-of-a-file-2')], [[200], [401]])
    await server.use({ authority: 'config' })
    await untilAsync(async () => (await of('sk-of-a-file-2')).join() === '200', 'the config rules')
    await server.untilRefused('/v1/models', 'sk-of-a-file-1')
  })
})
