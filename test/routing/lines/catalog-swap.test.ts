import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { type Catalog, createCatalog, type Line } from '../../../lib/core/catalog/index.ts'
import { exchange, gatewayFor, OPENAI_STREAM } from '../../support/exchange.ts'
import type { TestGateway } from '../../support/gateway.ts'
import {
  answerJson,
  chatChunk,
  chatEvents,
  type ScriptedUpstream,
  startUpstream,
} from '../../support/scripted-upstream.ts'
import { until } from '../../support/until.ts'

interface Swapping {
  readonly gateway: TestGateway
  readonly upstream: ScriptedUpstream
  readonly line: Line
  /** Puts a catalogue with these lines in the place of the present one. */
  swap(...lines: readonly Line[]): void
}

/** A gateway over one line, whose catalogue can be swapped. */
async function swapping(t: TestContext): Promise<Swapping> {
  const upstream = await startUpstream()
  t.after(() => upstream.close())
  let current: Catalog | undefined
  const gateway: TestGateway = await gatewayFor(t, {
    lines: [{ url: upstream.url, circuit: { errorPercent: 1, minimumCalls: 1, resetMs: 60_000 } }],
    route: { catalog: () => current ?? gateway.config.catalog },
  })
  const { models, lines } = gateway.config.catalog
  const [line] = lines
  assert.ok(line)
  return {
    gateway,
    upstream,
    line,
    swap(...next) {
      const catalog = createCatalog([...models.values()], next)
      gateway.lines.adopt(catalog)
      current = catalog
    },
  }
}

async function other(t: TestContext): Promise<ScriptedUpstream> {
  const upstream = await startUpstream()
  t.after(() => upstream.close())
  return upstream
}

describe('a replacement of the catalogue', () => {
  it('keeps the circuit of a line and its connections when other members of it change', async (t) => {
    const { gateway, upstream, line, swap } = await swapping(t)
    assert.equal((await exchange(gateway)).status, 200)
    const [connection] = upstream.connections
    const next = { ...line, priority: 7, weight: 3, models: new Map([['chat', 'renamed']]) }
    swap(next)
    assert.equal((await exchange(gateway)).status, 200)
    assert.deepEqual([...upstream.connections], [connection])
    assert.equal(upstream.requests.at(-1)?.json.model, 'renamed')

    upstream.script = (res) => answerJson(res, 500, {})
    await exchange(gateway)
    const last = { ...next, priority: 1, price: { inputPerMillion: 5n } }
    swap(last)
    assert.equal(gateway.lines.status(last).circuit, 'open')
    assert.equal((await exchange(gateway)).errorCode, 'circuit_open')
    assert.equal(upstream.requests.length, 3)
  })

  it('starts again with a line that has another address, key or circuit config', async (t) => {
    const { gateway, upstream, line, swap } = await swapping(t)
    const elsewhere = await other(t)
    const changes: Partial<Line>[] = [
      { apiKey: 'another' },
      { headers: { 'x-key': 'another' } },
      { circuit: { ...line.circuit, resetMs: 50_000 } },
      { origin: elsewhere.url },
    ]
    for (const change of changes) {
      upstream.script = (res) => answerJson(res, 500, {})
      swap(line)
      await exchange(gateway)
      assert.equal(gateway.lines.status(line).circuit, 'open')
      upstream.script = (res) => answerJson(res, 400, {})
      swap({ ...line, ...change })
      await exchange(gateway)
      const changed = { ...line, ...change }
      swap(changed)
      assert.equal(gateway.lines.status(changed).circuit, 'closed', JSON.stringify(change))
    }
    assert.equal(elsewhere.requests.length, 1)
  })

  it('closes the connections of a removed line after its last running call, which completes', async (t) => {
    const { gateway, upstream, line, swap } = await swapping(t)
    const successor = await other(t)
    const go = Promise.withResolvers<void>()
    upstream.script = async (res) => {
      res.writeHead(200, { 'content-type': 'text/event-stream' })
      res.write(chatChunk({ content: 'one' }))
      await go.promise
      res.end(chatEvents(['two']).join(''))
    }
    const running = exchange(gateway, OPENAI_STREAM)
    await until(() => upstream.requests.length === 1, 'the request')
    swap({ ...line, id: 'successor', origin: successor.url })
    assert.equal((await exchange(gateway)).status, 200)
    assert.equal(successor.requests.length, 1)
    assert.equal(upstream.connections.size, 1)
    go.resolve()
    const { text, broken } = await running
    assert.match(text, /two[\s\S]*\[DONE\]/)
    assert.equal(broken, false)
    await until(() => upstream.connections.size === 0, 'the end of its connections')
  })

  it('serves a call that was routed by the former lines, on a connection that ends with it', async (t) => {
    const { gateway, upstream, line } = await swapping(t)
    assert.equal((await exchange(gateway)).status, 200)
    gateway.lines.adopt(createCatalog([], [{ ...line, id: 'other' }]))
    assert.equal((await exchange(gateway)).status, 200)
    assert.equal(upstream.requests.length, 2)
    await until(() => upstream.connections.size === 0, 'the end of its connections')
  })

  it('shares the circuit of a line with a call that was routed by the former lines, and that needs it first', async (t) => {
    const { gateway, upstream, line, swap } = await swapping(t)
    const next = { ...line, weight: 9 }
    gateway.lines.adopt(createCatalog([], [next]))
    assert.equal(gateway.lines.status(next).circuit, 'closed')
    upstream.script = (res) => answerJson(res, 500, {})
    await exchange(gateway)
    assert.equal(gateway.lines.status(next).circuit, 'open')
    const last = { ...line, weight: 10 }
    swap(last)
    assert.equal(gateway.lines.status(last).circuit, 'open')
    assert.equal((await exchange(gateway)).errorCode, 'circuit_open')
    assert.equal(upstream.requests.length, 1)
  })

  it('gives no state of a removed line to a later call', async (t) => {
    const { gateway, line } = await swapping(t)
    const shared: string[] = []
    gateway.lines.share((state) => {
      state.onModel = (id) => shared.push(id)
    })
    const state = gateway.lines.stateOf(line)
    gateway.lines.adopt(createCatalog([], [{ ...line, id: 'other' }]))
    const { circuit } = state.modelState('late')
    circuit.fail('acme')
    assert.equal(circuit.state, 'closed')
    assert.deepEqual(shared, [])
  })

  it('keeps a line as an operator switched it', async (t) => {
    const { gateway, upstream, line, swap } = await swapping(t)
    gateway.lines.applySwitches(new Map([[line.id, false]]))
    for (const next of [
      { ...line, priority: 9 },
      { ...line, apiKey: 'another' },
    ]) {
      swap(next)
      assert.equal((await exchange(gateway)).errorCode, 'no_candidate')
    }
    assert.equal(upstream.requests.length, 0)
    gateway.lines.applySwitches(new Map())
    assert.equal((await exchange(gateway)).status, 200)
  })

  it('switches a line as the new config states', async (t) => {
    const { gateway, line, swap } = await swapping(t)
    assert.equal((await exchange(gateway)).status, 200)
    swap({ ...line, enabled: false })
    assert.equal((await exchange(gateway)).errorCode, 'no_candidate')
    swap(line)
    assert.equal((await exchange(gateway)).status, 200)
  })
})
