import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { assemble } from '../../examples/gateway/app.ts'
import { Readiness } from '../../examples/gateway/serving/readiness.ts'
import { openDurableStores } from '../../examples/gateway/stores/stores.ts'
import { type LimitStore, MemoryLimitStore } from '../../lib/middleware/rate-limit/index.ts'
import { loadConfig } from '../support/any-config.ts'
import { recordingLogger, serveApp } from '../support/app-server.ts'
import { type ScriptedUpstream, startUpstream } from '../support/scripted-upstream.ts'
import { until } from '../support/until.ts'

/** Limits that keep every call waiting until the test lets them go. */
class WaitingLimits extends MemoryLimitStore {
  asked = 0
  readonly go = Promise.withResolvers<void>()

  override admit(demand: Parameters<LimitStore['admit']>[0]): never {
    this.asked++
    return this.go.promise.then(() => super.admit(demand)) as never
  }
}

function configWith(upstream: ScriptedUpstream, id: string): object {
  const { url } = upstream
  return {
    accounts: [{ id: 'acme', limits: { concurrency: 10 } }],
    keys: [{ id: 'key', account: 'acme', secret: 'sk-1' }],
    models: [{ id, kind: 'chat' }],
    lines: [
      { id, provider: 'p', protocol: 'openai', baseUrl: `${url}/v1`, models: { [id]: `upstream-${id}` } },
    ],
    passThrough: [{ path: `/v1/${id}/*rest`, lines: [id] }],
  }
}

async function gatewayOf(t: TestContext, source: object, limits: LimitStore) {
  const config = loadConfig(source)
  const logger = recordingLogger()
  const durable = await openDurableStores('memory:', config, logger)
  const gateway = assemble({
    config,
    stores: { ...durable, limits },
    logger,
    readiness: new Readiness(durable.ping),
    adminToken: undefined,
  })
  const server = await serveApp((app) => void app.use(gateway.app))
  t.after(async () => {
    await server.close()
    await gateway.close()
    await durable.close()
  })
  const ask = (path: string, body: object): Promise<Response> =>
    fetch(server.url + path, {
      method: 'POST',
      headers: { authorization: 'Bearer sk-1', 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
  return { gateway, ask }
}

describe('a call between two configs', () => {
  it('finishes on the one that it began with, read or passed on', async (t) => {
    const former = await startUpstream()
    t.after(() => former.close())
    const next = await startUpstream()
    t.after(() => next.close())
    const limits = new WaitingLimits()
    const { gateway, ask } = await gatewayOf(t, configWith(former, 'former'), limits)
    const body = { model: 'former', messages: [{ role: 'user', content: 'Hi' }] }
    const waiting = [ask('/v1/chat/completions', body), ask('/v1/former/audio', body)]
    await until(() => limits.asked === 2, 'both calls')
    gateway.adopt(loadConfig(configWith(next, 'next')))
    limits.go.resolve()
    for (const answer of await Promise.all(waiting)) assert.equal(answer.status, 200)
    assert.equal(former.requests.length, 2)
    assert.equal(next.requests.length, 0)

    assert.equal((await ask('/v1/chat/completions', body)).status, 404)
    assert.equal((await ask('/v1/former/audio', body)).status, 404)
    assert.equal((await ask('/v1/chat/completions', { ...body, model: 'next' })).status, 200)
    assert.equal((await ask('/v1/next/audio', body)).status, 200)
    assert.equal(next.requests.length, 2)
    await until(() => former.connections.size === 0, 'the end of the former connections')
  })
})
