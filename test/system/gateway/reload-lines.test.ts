import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { envelopeOf, jsonOf } from '../../support/answer-bodies.ts'
import { lookUp } from '../../support/gateway-process.ts'
import { startKeepingUpstream } from '../../support/responses-upstream.ts'
import { startUpstream } from '../../support/scripted-upstream.ts'
import { until, untilAsync } from '../../support/until.ts'
import { json, startVideoUpstream } from '../../support/video-upstream.ts'
import { type FileGateway, startFileGateway } from './file-gateway.ts'

const HEADERS = { authorization: 'Bearer sk-demo', 'content-type': 'application/json' }

async function started(t: TestContext, config: (own: FileGateway['config']) => object) {
  const server = await startFileGateway(t)
  let reloads = 0
  const adopt = async (next: object): Promise<void> => {
    await server.write({ ...server.config, ...next })
    reloads++
    const count = () => server.gateway.stdout.split('"msg":"config reloaded"').length - 1
    await until(() => count() === reloads, `reload ${reloads}`)
  }
  await adopt(config(server.config))
  const ask = (path: string, body?: object, method = body ? 'POST' : 'GET') =>
    fetch(server.gateway.url + path, {
      method,
      headers: HEADERS,
      ...(body && { body: JSON.stringify(body) }),
    })
  return { ...server, adopt, ask }
}

const lineTo = (id: string, url: string, models: object, extra: object = {}) => ({
  id,
  provider: 'p',
  protocol: 'openai',
  baseUrl: `${url}/v1`,
  models,
  ...extra,
})

describe('a changed config reaches what is passed on', () => {
  it('by lines and by model: the next call goes to the new line, one that runs ends on the old one', async (t) => {
    const [former, next] = [await startUpstream(), await startUpstream()]
    t.after(() => Promise.all([former.close(), next.close()]))
    const answer = (res: { end(text: string): void }, text: string) => res.end(text)
    const go = Promise.withResolvers<void>()
    former.script = async (res, { path }) => {
      if (path.includes('held')) await go.promise
      answer(res, 'former')
    }
    next.script = (res) => answer(res, 'next')
    const models = [{ id: 'speech', kind: 'chat' }]
    const rules = (line: string) => [
      { path: '/v1/bytes/*rest', lines: [line] },
      { path: '/v1/audio/*rest', model: 'speech' },
    ]
    const gateway = await started(t, () => ({
      models,
      lines: [lineTo('former', former.url, { speech: 'u' })],
      passThrough: rules('former'),
    }))
    const textOf = async (asked: Promise<Response>) => {
      const response = await asked
      assert.equal(response.status, 200)
      return response.text()
    }
    assert.equal(await textOf(gateway.ask('/v1/bytes/1')), 'former')
    const held = [gateway.ask('/v1/bytes/held'), gateway.ask('/v1/audio/held', { input: 'Hi' })]
    await until(() => former.requests.length === 3, 'both calls')

    // The rule by model reads the same; what serves the model is another line.
    await gateway.adopt({
      models,
      lines: [lineTo('next', next.url, { speech: 'u' })],
      passThrough: rules('next'),
    })
    assert.equal(await textOf(gateway.ask('/v1/bytes/2')), 'next')
    assert.equal(await textOf(gateway.ask('/v1/audio/speech', { input: 'Hi' })), 'next')
    go.resolve()
    for (const asked of held) assert.equal(await textOf(asked), 'former')
    assert.equal(former.requests.length, 3)
    await until(() => former.connections.size === 0, 'the end of the former connections')

    await gateway.adopt({ models, lines: [lineTo('next', next.url, { speech: 'u' })] })
    const gone = await gateway.ask('/v1/bytes/3')
    assert.equal(gone.status, 404)
    assert.equal(next.requests.length, 2)
  })
})

describe('a changed config reaches stored responses', () => {
  it('of a line that is gone: nothing of it goes to another line, until it is there again', async (t) => {
    const [one, two] = [await startKeepingUpstream('one'), await startKeepingUpstream('two')]
    t.after(() => Promise.all([one.close(), two.close()]))
    const models = [{ id: 'chat', kind: 'chat' }]
    const [first, second] = [
      lineTo('one', one.url, { chat: 'u' }),
      lineTo('two', two.url, { chat: 'u' }, { priority: 1 }),
    ]
    const gateway = await started(t, () => ({ models, lines: [first] }))
    const made = await jsonOf<{ id: string }>(
      await gateway.ask('/v1/responses', { model: 'chat', input: 'Hi' }),
    )
    assert.match(made.id, /^resp_one/)

    await gateway.adopt({ models, lines: [second] })
    const seen = one.requests.length
    const goingOn = { model: 'chat', input: 'And?', previous_response_id: made.id }
    for (const answer of [
      await gateway.ask('/v1/responses', goingOn),
      await gateway.ask(`/v1/responses/${made.id}`),
    ]) {
      assert.equal(answer.status, 503)
      assert.equal((await envelopeOf(answer)).error.code, 'no_candidate')
    }
    assert.deepEqual([one.requests.length, two.requests.length], [seen, 0])
    const other = await jsonOf<{ id: string }>(
      await gateway.ask('/v1/responses', { model: 'chat', input: 'Hi' }),
    )
    assert.match(other.id, /^resp_two/)

    await gateway.adopt({ models, lines: [first, second] })
    for (const [id, name] of [
      [made.id, 'one'],
      [other.id, 'two'],
    ]) {
      const answer = await gateway.ask('/v1/responses', { ...goingOn, previous_response_id: id })
      assert.match((await jsonOf<{ id: string }>(answer)).id, new RegExp(`^resp_${name}`))
      assert.equal((await gateway.ask(`/v1/responses/${id}`)).status, 200)
    }
  })
})

describe('a changed config reaches videos', () => {
  const models = [{ id: 'clip', kind: 'video', price: { perSecond: '0.1' } }]
  const asked = { model: 'clip', prompt: 'waves', seconds: '4' }

  it('new ones go to new lines; those that a line makes wait for it, and one being created is created there', async (t) => {
    const [former, next] = [await startVideoUpstream(), await startVideoUpstream()]
    t.after(() => Promise.all([former.close(), next.close()]))
    const go = Promise.withResolvers<void>()
    former.script = async ({ method, body }) => {
      if (method === 'POST' && body.prompt === 'held') await go.promise
      return false
    }
    const [first, second] = [
      lineTo('former', former.url, { clip: 'u' }),
      lineTo('next', next.url, { clip: 'u' }),
    ]
    const gateway = await started(t, () => ({ models, lines: [first] }))
    const create = async (body: object = asked) => {
      const response = await gateway.ask('/v1/videos', body)
      assert.equal(response.status, 200)
      const id = response.headers.get('x-request-id')
      return { requestId: id, id: (await jsonOf<{ id: string }>(response)).id }
    }
    const made = await create()
    const held = create({ ...asked, prompt: 'held' })
    await until(() => former.seen('POST').length === 2, 'the held create')

    await gateway.adopt({ models, lines: [second] })
    await create()
    assert.equal(next.tasks.size, 1)
    go.resolve()
    await held
    assert.deepEqual([former.tasks.size, next.tasks.size], [2, 1])
    const reads = former.seen('GET').length
    for (const task of former.tasks.values()) Object.assign(task, { status: 'completed' })
    const waiting = await jsonOf<{ status: string }>(await gateway.ask(`/v1/videos/${made.id}`))
    assert.equal(waiting.status, 'queued')
    assert.equal(former.seen('GET').length, reads, 'a line that is gone is not asked')
    const cancel = await gateway.ask(`/v1/videos/${made.id}`, undefined, 'DELETE')
    assert.deepEqual([cancel.status, (await envelopeOf(cancel)).error.code], [503, 'no_candidate'])
    assert.equal(former.seen('DELETE').length, 0)

    await gateway.adopt({ models, lines: [first, second] })
    const { status } = await jsonOf<{ status: string }>(await gateway.ask(`/v1/videos/${made.id}`))
    assert.equal(status, 'completed')
    assert.equal((await gateway.ask(`/v1/videos/${made.id}/content`)).status, 200)
    const entry = await lookUp(gateway.gateway.url, made.requestId)
    assert.equal(entry.billing?.charged, '0.4')
    // Nobody asks for the other one.
    await untilAsync(async () => {
      const { data } = await gateway.admin<{ data: { state: string }[] }>('/video-tasks?state=succeeded')
      return data.length === 2
    }, 'the settling of the other')
    assert.deepEqual((await gateway.ledger()).violations, [])
  })

  it('with its routing: how many lines are tried, and in which order', async (t) => {
    const [full, free] = [await startVideoUpstream(), await startVideoUpstream()]
    t.after(() => Promise.all([full.close(), free.close()]))
    full.script = (_req, res) => {
      json(res, 429, { error: { code: 'rate_limited', message: 'later' } }, { 'retry-after': '0' })
      return true
    }
    const lines = [
      lineTo('full', full.url, { clip: 'u' }),
      lineTo('free', free.url, { clip: 'u' }, { priority: 1, price: { perSecond: '0.01' } }),
    ]
    const gateway = await started(t, () => ({ models, lines, routing: { maxAttempts: 1 } }))
    assert.equal((await gateway.ask('/v1/videos', asked)).status, 429)
    assert.equal(free.tasks.size, 0)

    await gateway.adopt({ models, lines, routing: { maxAttempts: 2 } })
    // A wait of 0 rests the model on the line for a second.
    await sleep(1100)
    assert.equal((await gateway.ask('/v1/videos', asked)).status, 200)
    assert.deepEqual([full.seen('POST').length, free.tasks.size], [2, 1])

    await gateway.adopt({ models, lines, routing: { maxAttempts: 1, strategy: 'price' } })
    const cheapest = await gateway.ask('/v1/videos', asked)
    assert.equal(cheapest.status, 200)
    assert.deepEqual([full.seen('POST').length, free.tasks.size], [2, 2])
    const entry = await lookUp(gateway.gateway.url, cheapest.headers.get('x-request-id'))
    assert.equal(entry.routing?.strategy, 'price')
  })
})
