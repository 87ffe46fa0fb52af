import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  MemoryResourceStore,
  type ResourceStore,
  type UpstreamResource,
} from '../../../lib/middleware/references/index.ts'
import type { RouteOptions } from '../../../lib/middleware/route/index.ts'
import { readExchange } from '../../support/exchange.ts'
import { KEY } from '../../support/gateway.ts'
import {
  EVENTS_BEFORE_WORDS,
  type KeepingUpstream,
  responseEvents,
  startKeepingUpstream,
} from '../../support/responses-upstream.ts'
import { stream } from '../../support/scripted-upstream.ts'
import { until } from '../../support/until.ts'
import { type ResponsesGateway, responsesGateway } from './accounts.ts'

/** A store that notes a response only when it is let, or fails to. */
class HeldStore extends MemoryResourceStore implements ResourceStore {
  readonly asked: UpstreamResource[] = []
  #let = Promise.withResolvers<void>()

  override async remember(things: readonly UpstreamResource[]): Promise<void> {
    this.asked.push(...things.filter(({ kind }) => kind === 'response'))
    await this.#let.promise
    await super.remember(things)
  }

  release(): void {
    this.#let.resolve()
  }

  fail(): void {
    this.#let.promise.catch(() => {})
    this.#let.reject(new Error('the store is gone'))
  }
}

async function heldGateway(
  t: TestContext,
  route: Partial<RouteOptions> = {},
): Promise<{ store: HeldStore; upstream: KeepingUpstream; gateway: ResponsesGateway }> {
  const upstream = await startKeepingUpstream('one')
  t.after(() => upstream.close())
  const store = new HeldStore()
  const gateway = await responsesGateway(t, {
    lines: [{ url: upstream.url }, { url: upstream.url }],
    resourceStore: store,
    route,
  })
  return { store, upstream, gateway }
}

/** Starts a call; answers it, and whether its head has come. */
function start(gateway: ResponsesGateway, body: Record<string, unknown>, signal?: AbortSignal) {
  const state = { answered: false }
  const response = fetch(`${gateway.url}/v1/responses`, {
    method: 'POST',
    headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'chat', input: 'hi', ...body }),
    ...(signal && { signal }),
  })
  response.then(
    () => {
      state.answered = true
    },
    () => {},
  )
  return { state, response }
}

describe('the id of a response', () => {
  for (const streams of [false, true]) {
    const how = streams ? 'streamed' : 'plain'

    it(`goes out only when it is noted (${how})`, async (t) => {
      const { store, gateway } = await heldGateway(t)
      const { state, response } = start(gateway, { stream: streams })
      await until(() => store.asked.length === 1)
      // Were it not held, the answer would be here long before another exchange is over.
      assert.equal((await fetch(`${gateway.url}/v1/models`)).status, 401)
      assert.equal(state.answered, false)
      store.release()
      const answer = await readExchange(await response)
      assert.equal(answer.status, 200)
      assert.match(answer.text, /resp_one_1/)
      assert.equal(answer.broken, false)
      assert.equal((await gateway.entry(answer.requestId)).outcome, 'completed')
    })

    it(`does not go out when it cannot be noted, and nothing is used (${how})`, async (t) => {
      const { store, upstream, gateway } = await heldGateway(t)
      const { response } = start(gateway, { stream: streams })
      await until(() => store.asked.length === 1)
      store.fail()
      const answer = await readExchange(await response)
      assert.equal(answer.status, 500)
      assert.equal(answer.errorCode, 'internal_error')
      assert.doesNotMatch(answer.text, /resp_one|gone/)
      assert.equal(upstream.requests.length, 1, 'it is no fault of the line')
      const entry = await gateway.entry(answer.requestId)
      assert.equal(entry.usage, null)
      assert.equal(entry.outcome, 'failed')
      const [line] = gateway.config.catalog.lines
      assert.ok(line)
      assert.equal(gateway.lines.status(line).circuit, 'closed')
    })

    it(`is not noted for a caller that left meanwhile (${how})`, async (t) => {
      const { store, gateway } = await heldGateway(t)
      const leaving = new AbortController()
      const { response } = start(gateway, { stream: streams }, leaving.signal)
      await until(() => store.asked.length === 1)
      leaving.abort()
      await assert.rejects(response)
      store.release()
      await until(() => gateway.openCalls.size === 0)
    })
  }

  it('is not read further for a caller that left while it was noted, though its end had arrived by then', async (t) => {
    const { store, upstream, gateway } = await heldGateway(t, { onDisconnect: 'drain' })
    const rest = responseEvents(['I ', 'am ', 'one'])
    upstream.script = async (res) => {
      await stream(res, rest.splice(0, EVENTS_BEFORE_WORDS + 1), { end: false })
      await until(() => store.asked.length === 1)
      // The line waits from the next chunk on.
      res.write(rest.shift())
      await gateway.ask('GET', 'resp_none')
      res.end(rest.splice(0).join(''))
    }
    const leaving = new AbortController()
    const { response } = start(gateway, { stream: true }, leaving.signal)
    await until(() => store.asked.length === 1)
    const [call] = gateway.openCalls
    assert.ok(call)
    await until(() => rest.length === 0)
    // Were the line not held up, its end would have been read long before another exchange is over.
    await gateway.ask('GET', 'resp_none')
    leaving.abort()
    await assert.rejects(response)
    await until(() => call.left)
    store.release()
    await until(() => gateway.openCalls.size === 0)
    const { routing, usage } = await gateway.entry(call.id)
    assert.deepEqual(routing?.disconnect, { policy: 'drain', ended: 'drained' })
    assert.equal(usage?.source, 'measured')
  })

  it('asks no line while the store is known to be away, unless nothing is to be stored', async (t) => {
    const { store, upstream, gateway } = await heldGateway(t)
    store.fail()
    store.find = () => Promise.reject(new Error('the store is gone'))
    let asked = -1
    // One error is that of one record; only when nothing succeeds for a while the store is away.
    while (upstream.requests.length !== asked) {
      asked = upstream.requests.length
      assert.equal((await gateway.create()).errorCode, 'internal_error')
      await sleep(20)
    }
    for (const body of [{}, { stream: true }, { previous_response_id: 'resp_1' }])
      assert.equal((await gateway.create(body)).errorCode, 'internal_error')
    assert.equal((await gateway.ask('GET', 'resp_1')).errorCode, 'internal_error')
    assert.equal(upstream.requests.length, asked)
    assert.equal((await gateway.create({ store: false })).status, 200)
  })

  it('is noted with what the conversation then holds', async (t) => {
    const { store, gateway } = await heldGateway(t)
    store.release()
    await gateway.create()
    await gateway.create({ stream: true })
    await until(() => store.asked.length === 3)
    const [plain, begun, ended] = store.asked
    assert.deepEqual([plain?.id, plain?.tokens], ['resp_one_1', 10])
    assert.deepEqual([begun?.id, ended?.id, ended?.tokens], ['resp_one_2', 'resp_one_2', 10])
    assert.ok((begun?.tokens ?? 0) > 0)
  })

  it('is noted before the end where only the last event contains it', async (t) => {
    const { store, upstream, gateway } = await heldGateway(t)
    store.release()
    const nameless = (event: string) => event.replaceAll('"id":"resp_1",', '')
    const events = responseEvents(['Hello'])
    upstream.script = (res) => stream(res, [...events.slice(0, -1).map(nameless), ...events.slice(-1)])
    const answer = await gateway.create({ stream: true })
    assert.equal(answer.status, 200)
    assert.deepEqual(
      store.asked.map(({ id }) => id),
      ['resp_1'],
    )
    assert.equal((await store.find('acme', [{ kind: 'response', id: 'resp_1' }])).length, 1)
  })

  it('comes with everything that was said while it was being noted', async (t) => {
    const { store, upstream, gateway } = await heldGateway(t)
    const words = Array.from({ length: 3000 }, (_, i) => `word ${i} ${'x'.repeat(50)} `)
    upstream.script = (res) => stream(res, responseEvents(words))
    const { response } = start(gateway, { stream: true })
    await until(() => store.asked.length === 1)
    store.release()
    const { text, broken } = await readExchange(await response)
    assert.equal(broken, false)
    assert.equal(text, responseEvents(words).join(''))
  })
})
