import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { MemoryResourceStore, type ResourceStore } from '../../../lib/middleware/references/index.ts'
import { openDatabase, SqlResourceStore } from '../../../lib/stores/sql/index.ts'
import { databaseUrl } from '../../stores/sql/support/temporary-database.ts'
import { dataOf } from '../../support/exchange.ts'
import { type KeepingUpstream, startKeepingUpstream } from '../../support/responses-upstream.ts'
import { answerJson } from '../../support/scripted-upstream.ts'
import { idOf, OTHER_KEY, responsesGateway } from './accounts.ts'

type SameId = (count: number) => string

/** Two lines that keep what they make; the first one is tried first. */
async function twoLines(t: TestContext, ids?: SameId): Promise<readonly [KeepingUpstream, KeepingUpstream]> {
  const lines = [await startKeepingUpstream('one', ids), await startKeepingUpstream('two', ids)] as const
  for (const upstream of lines) t.after(() => upstream.close())
  return lines
}

const seeds = (...upstreams: readonly KeepingUpstream[]) => upstreams.map(({ url }) => ({ url }))

const fails: KeepingUpstream['script'] = (res) => answerJson(res, 500, { error: { message: 'down' } })

describe('a request that goes on from a response', () => {
  for (const stream of [false, true]) {
    it(`goes to the line that made it, however the lines are ordered (${stream ? 'streamed' : 'plain'})`, async (t) => {
      const [one, two] = await twoLines(t)
      const gateway = await responsesGateway(t, { lines: seeds(one, two) })
      const { script } = one
      one.script = fails
      const first = await gateway.create({ stream })
      one.script = script
      const id = stream ? (dataOf(first.text)[0] as { response?: { id: string } }).response?.id : idOf(first)
      assert.equal(id, 'resp_two_1')
      one.requests.length = 0

      const next = await gateway.create({ previous_response_id: id, stream })
      assert.equal(next.status, 200)
      assert.match(next.text, /resp_two_2/)
      assert.equal(one.requests.length, 0)
      const { routing } = await gateway.entry(next.requestId)
      assert.deepEqual(routing?.eliminated, [
        { line: 'line-0', reason: 'pinned', detail: 'another line has the response' },
      ])
      assert.deepEqual(
        routing?.attempts.map(({ line, outcome }) => [line, outcome]),
        [['line-1', 'completed']],
      )
      assert.equal((await gateway.create()).status, 200)
      assert.equal(one.requests.length, 1, 'a conversation that begins is not pinned')
    })
  }

  it('finds the line in another process as soon as the id is out', async (t) => {
    const [one, two] = await twoLines(t)
    const url = await databaseUrl(t)
    const databases = [await openDatabase(url), await openDatabase(url)]
    const [here, there] = await Promise.all(
      databases.map((db) =>
        responsesGateway(t, { lines: seeds(one, two), resourceStore: new SqlResourceStore(db) }),
      ),
    )
    t.after(() => Promise.all(databases.map((db) => db.destroy())))
    const { script } = one
    one.script = fails
    const response = await fetch(`${here?.url}/v1/responses`, {
      method: 'POST',
      headers: { authorization: 'Bearer sk-test-1', 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'chat', input: 'hi', stream: true }),
    })
    one.script = script
    const reader = response.body?.getReader()
    const begun = Buffer.from((await reader?.read())?.value ?? []).toString()
    const id = /"id":"(resp_[^"]+)"/.exec(begun)?.[1]
    const next = await there?.create({ previous_response_id: id })
    await reader?.cancel()
    assert.equal(next?.status, 200)
    assert.equal(two.requests.length, 2)
  })

  it('of another account is not found, and no line is asked', async (t) => {
    const [one, two] = await twoLines(t)
    const gateway = await responsesGateway(t, { lines: seeds(one, two) })
    const id = idOf(await gateway.create())
    const refused = await gateway.create({ previous_response_id: id }, OTHER_KEY)
    assert.equal(refused.status, 404)
    assert.equal(refused.errorCode, 'not_found')
    assert.equal(one.requests.length + two.requests.length, 1)
    assert.equal((await gateway.create({ previous_response_id: 'resp_nobody' })).errorCode, 'not_found')
  })

  it('keeps two accounts apart to whom two lines gave one id', async (t) => {
    const [one, two] = await twoLines(t, () => 'resp_same')
    const gateway = await responsesGateway(t, { lines: seeds(one, two) })
    await gateway.create()
    const { script } = one
    one.script = fails
    await gateway.create({}, OTHER_KEY)
    one.script = script
    for (const [key, name] of [
      [undefined, 'one'],
      [OTHER_KEY, 'two'],
    ] as const) {
      const answer = await gateway.ask('GET', 'resp_same', key)
      assert.equal(answer.status, 200)
      assert.match(answer.text, new RegExp(`I am ${name}`))
    }
  })

  it('shows no caller an object that a line gave the same id for two accounts', async (t) => {
    const [one] = await twoLines(t, () => 'resp_same')
    const gateway = await responsesGateway(t, { lines: seeds(one) })
    await gateway.create()
    await gateway.create({}, OTHER_KEY)
    assert.equal((await gateway.ask('GET', 'resp_same')).errorCode, 'not_found')
    assert.equal((await gateway.create({ previous_response_id: 'resp_same' }, OTHER_KEY)).status, 404)
    assert.equal(one.requests.length, 2)
  })

  it('is not found where nothing was stored: neither caller nor upstream keeps it', async (t) => {
    const [one] = await twoLines(t)
    const noted: string[] = []
    const store = new MemoryResourceStore()
    const gateway = await responsesGateway(t, {
      lines: seeds(one),
      resourceStore: listening(store, ({ id }) => noted.push(id)),
    })
    const id = idOf(await gateway.create({ store: false }))
    const streamed = await gateway.create({ store: false, stream: true })
    assert.equal(streamed.status, 200)
    assert.deepEqual(noted, [])
    assert.equal((await gateway.create({ previous_response_id: id })).errorCode, 'not_found')
  })

  it('is not found once it has expired', async (t) => {
    const [one] = await twoLines(t)
    const store = new MemoryResourceStore()
    const gateway = await responsesGateway(t, { lines: seeds(one), resourceStore: store })
    const id = idOf(await gateway.create())
    const [known] = await store.find('acme', [{ kind: 'response', id }])
    assert.ok(known)
    await store.remember([{ ...known, expiresAt: Date.now() - 1 }])
    assert.equal((await gateway.create({ previous_response_id: id })).errorCode, 'not_found')
    await store.remember([{ ...known, expiresAt: Date.now() + 60_000 }])
    assert.equal((await gateway.create({ previous_response_id: id })).status, 200)
  })

  it('counts what the conversation holds so far as input', async (t) => {
    const [one] = await twoLines(t)
    const gateway = await responsesGateway(t, { lines: seeds(one) })
    const first = await gateway.create()
    const alone = (await gateway.entry(first.requestId)).request?.estimated_input_tokens ?? 0
    const second = await gateway.create({ previous_response_id: idOf(first) })
    assert.equal((await gateway.entry(second.requestId)).request?.estimated_input_tokens, alone + 10)
  })

  it('that does not fit the window with it is refused', async (t) => {
    const [one] = await twoLines(t)
    const gateway = await responsesGateway(t, { lines: [{ url: one.url, contextWindow: 12 }] })
    const id = idOf(await gateway.create())
    assert.equal((await gateway.create({ previous_response_id: id })).errorCode, 'context_too_long')
    assert.equal((await gateway.create({ previous_response_id: id, truncation: 'auto' })).status, 200)
  })
})

describe('a pinned line that cannot serve', () => {
  async function pinned(t: TestContext, line: Record<string, unknown> = {}) {
    const [one, two] = await twoLines(t)
    const gateway = await responsesGateway(t, { lines: [{ url: one.url, ...line }, { url: two.url }] })
    const id = idOf(await gateway.create())
    const [state] = gateway.config.catalog.lines.map((each) => gateway.lines.stateOf(each))
    assert.ok(state)
    return { one, two, gateway, id, state }
  }

  it('is switched off: no_candidate, and the trace says what removed each line', async (t) => {
    const { gateway, id, state, two } = await pinned(t)
    state.enabled = false
    for (const answer of [await gateway.create({ previous_response_id: id }), await gateway.ask('GET', id)]) {
      assert.equal(answer.status, 503)
      assert.equal(answer.errorCode, 'no_candidate')
      const { routing } = await gateway.entry(answer.requestId)
      assert.deepEqual(
        routing?.eliminated.map(({ line, reason }) => [line, reason]),
        [
          ['line-0', 'disabled'],
          ['line-1', 'pinned'],
        ],
      )
    }
    assert.equal(two.requests.length, 0)
  })

  it('rests: upstream_rate_limited, with its wait', async (t) => {
    const { gateway, id, state, two } = await pinned(t)
    state.modelState('chat').rest(5000)
    const answer = await gateway.create({ previous_response_id: id })
    assert.equal(answer.errorCode, 'upstream_rate_limited')
    assert.equal(answer.headers.get('retry-after'), '5')
    assert.equal(two.requests.length, 0)
  })

  it('fails: its own code, and its circuit opens for it alone', async (t) => {
    const { gateway, id, one, two } = await pinned(t, { circuit: { minimumCalls: 1 } })
    one.script = fails
    assert.equal((await gateway.create({ previous_response_id: id })).errorCode, 'upstream_error')
    assert.equal((await gateway.create({ previous_response_id: id })).errorCode, 'circuit_open')
    assert.equal((await gateway.ask('GET', id)).errorCode, 'circuit_open')
    assert.equal(two.requests.length, 0)
  })

  it('is not in the config any more: no_candidate', async (t) => {
    const [one, two] = await twoLines(t)
    const store = new MemoryResourceStore()
    const before = await responsesGateway(t, { lines: [{ url: one.url, id: 'gone' }], resourceStore: store })
    const id = idOf(await before.create())
    const now = await responsesGateway(t, { lines: [{ url: two.url, id: 'new' }], resourceStore: store })
    assert.equal((await now.create({ previous_response_id: id })).errorCode, 'no_candidate')
    assert.equal((await now.ask('GET', id)).errorCode, 'no_candidate')
    assert.equal(two.requests.length, 0)
  })

  it('has lost the response: not_found, which is not its fault', async (t) => {
    const { gateway, id, one, two, state } = await pinned(t, { circuit: { minimumCalls: 1 } })
    one.kept.clear()
    const answer = await gateway.create({ previous_response_id: id })
    assert.equal(answer.errorCode, 'not_found')
    assert.match(answer.envelope().error.message, /Send the conversation as input/)
    assert.equal((await gateway.ask('GET', id)).errorCode, 'not_found')
    assert.equal(state.circuit.state, 'closed')
    assert.equal(two.requests.length, 0)
  })
})

/** A store that reports each record to `onRemember`. */
function listening(store: ResourceStore, onRemember: (record: { id: string }) => void): ResourceStore {
  return {
    remember(things) {
      for (const thing of things) onRemember(thing)
      return store.remember(things)
    },
    find: (account, names) => store.find(account, names),
    list: (account, kind, page) => store.list(account, kind, page),
    forget: (account, name) => store.forget(account, name),
    prune: (before, limit) => store.prune(before, limit),
  }
}
