import assert from 'node:assert/strict'
import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { describe, it, type TestContext } from 'node:test'
import type { Request, Response } from 'express'
import { type CallRequest, type OpenCall, openCall } from '../../../lib/core/call/index.ts'
import { GatewayError } from '../../../lib/core/errors/index.ts'
import {
  MemoryResourceStore,
  references,
  UpstreamResources,
} from '../../../lib/middleware/references/index.ts'
import { recordingLogger } from '../../support/app-server.ts'

type Name = { kind: string; id: string }

interface Asked {
  keeps?: boolean
  names?: readonly Name[]
  account?: string
  truncation?: string
  /** Whether requests of its kind could ever leave something. */
  canKeep?: boolean
  /** Whether `readRequest` is not mounted before. */
  unread?: boolean
}

/** The middleware on a store in memory that can go away. */
function chain(t: TestContext, storeTimeoutMs = 1500) {
  const store = new MemoryResourceStore()
  const resources = new UpstreamResources({ store, storeTimeoutMs, logger: recordingLogger() })
  t.after(() => resources.close())
  const run = references({ resources })
  return {
    store,
    async ask({ keeps = false, names = [], account = 'acme', truncation, canKeep = true, unread }: Asked) {
      const req = new IncomingMessage(new Socket()) as Request
      const res = new ServerResponse(req) as Response
      const call: OpenCall = openCall(req, res, { logger: recordingLogger() })
      call.principal = { accountId: account, keyId: 'k' } as typeof call.principal & {}
      const request = {
        operation: canKeep ? { keeps: () => keeps } : {},
        model: { id: 'm' },
        body: { json: { truncation } },
        references: names.map((name) => ({ ...name, place: () => 'it' })),
        estimatedInputTokens: 40,
        windowTokens: 50,
      } as unknown as CallRequest
      if (!unread) call.request = request
      const error = await new Promise<unknown>((resolve) => void run(req, res, resolve))
      const { estimatedInputTokens, windowTokens } = call.request ?? {}
      return { call, error, request, tokens: [estimatedInputTokens, windowTokens] }
    },
  }
}

const RESPONSE = { kind: 'response', id: 'resp_1' }
const MESSAGE = { kind: 'message', id: 'msg_1' }
const FILE = { kind: 'file', id: 'file_1' }
const CONVERSATION = { kind: 'conversation', id: 'conv_1' }

describe('a request that names what a line keeps', () => {
  it('goes to that line, and counts the conversation so far as its input', async (t) => {
    const { ask } = chain(t)
    const { call, error } = await ask({ keeps: true })
    assert.equal(error, undefined)
    await call.keepAnswer?.({ line: 'l1', made: [RESPONSE, MESSAGE, FILE], tokens: 7 })
    for (const [names, more] of [
      [[RESPONSE], 7],
      [[MESSAGE], 7],
      [[FILE], 0],
      [[RESPONSE, MESSAGE, FILE], 14],
    ] as const) {
      const named = await ask({ names })
      assert.equal(named.error, undefined)
      assert.equal(named.call.pin?.line, 'l1')
      assert.deepEqual(named.tokens, [40 + more, 50 + more])
      const cut = await ask({ names, truncation: 'auto' })
      assert.deepEqual(cut.tokens, [40 + more, 50], 'the line cuts what does not fit')
      assert.equal(named.call.keepAnswer, null)
      if (more === 0) assert.equal(named.call.request, named.request, 'nothing is added')
    }
  })

  it('lets a conversation grow by each response to it, and nothing else', async (t) => {
    const { ask } = chain(t)
    const made = await ask({ keeps: true })
    await made.call.keepAnswer?.({ line: 'l1', made: [CONVERSATION, FILE], tokens: 5 })
    assert.deepEqual((await ask({ names: [CONVERSATION] })).tokens, [40, 50])
    const answered = await ask({ keeps: true, names: [CONVERSATION, FILE] })
    await answered.call.keepAnswer?.({ line: 'l1', made: [RESPONSE], tokens: 9 })
    assert.deepEqual((await ask({ names: [CONVERSATION] })).tokens, [49, 59])
    assert.deepEqual((await ask({ names: [FILE] })).tokens, [40, 50])
    assert.deepEqual((await ask({ names: [RESPONSE] })).tokens, [49, 59])
  })

  it('is refused where its account has no such thing, or two lines have them', async (t) => {
    const { ask } = chain(t)
    const { call } = await ask({ keeps: true })
    await call.keepAnswer?.({ line: 'l1', made: [RESPONSE], tokens: 7 })
    await call.keepAnswer?.({ line: 'l2', made: [FILE], tokens: 7 })
    for (const [asked, code] of [
      [{ names: [{ ...RESPONSE, id: 'resp_2' }] }, 'not_found'],
      [{ names: [RESPONSE], account: 'other' }, 'not_found'],
      [{ names: [RESPONSE, FILE] }, 'invalid_request'],
    ] as const) {
      const { error, call: refused } = await ask(asked)
      assert.ok(error instanceof GatewayError, JSON.stringify(asked))
      assert.equal(error.code, code)
      assert.equal(error.headers['x-request-id'] ?? error.headers['X-Request-Id'], refused.id)
    }
  })

  it('is refused while the store is away', async (t) => {
    const { ask, store } = chain(t)
    const find = t.mock.method(store, 'find', async () => {
      throw new Error('away')
    })
    for (const asked of [{ names: [RESPONSE] }, { keeps: true, names: [RESPONSE] }]) {
      const { error } = await ask(asked)
      assert.ok(error instanceof GatewayError, JSON.stringify(asked))
      assert.equal(error.code, 'internal_error')
    }
    const asked = find.mock.callCount()
    assert.equal((await ask({})).error, undefined, 'who names nothing needs no store')
    assert.equal(find.mock.callCount(), asked)
  })
})

it('a request that names nothing passes as it is', async (t) => {
  const { ask, store } = chain(t)
  const find = t.mock.method(store, 'find')
  for (const asked of [{}, { keeps: true }]) {
    const { error, call, request } = await ask(asked)
    assert.equal(error, undefined)
    assert.equal(call.request, request)
    assert.equal(call.keepAnswer !== null, 'keeps' in asked)
  }
  assert.equal(find.mock.callCount(), 0)
})

it('a request that was not read does not pass unchecked', async (t) => {
  const { error } = await chain(t).ask({ unread: true })
  assert.equal(
    String(error),
    'TypeError: references: there is no call.request; mount readRequest before references',
  )
})

it('a request that may leave something is refused before a line makes it, while the store is silent', async (t) => {
  const { ask, store } = chain(t, 20)
  t.mock.method(store, 'find', () => new Promise(() => {}))
  for (const asked of [{ names: [FILE] }, { keeps: true }, { keeps: true, names: [FILE] }]) {
    const { error, call } = await ask(asked)
    assert.ok(error instanceof GatewayError, JSON.stringify(asked))
    assert.equal(error.code, 'internal_error')
    assert.equal(error.headers['x-request-id'] ?? error.headers['X-Request-Id'], call.id)
  }
  for (const asked of [{}, { canKeep: false }]) assert.equal((await ask(asked)).error, undefined)
})

it('a request of a kind that leaves nothing is pinned all the same', async (t) => {
  const { ask } = chain(t)
  const { call } = await ask({ keeps: true })
  await call.keepAnswer?.({ line: 'l1', made: [FILE], tokens: 0 })
  const named = await ask({ canKeep: false, names: [FILE] })
  assert.deepEqual([named.error, named.call.pin?.line, named.call.keepAnswer], [undefined, 'l1', null])
})

it('a mistake of a store is reported as it is', async (t) => {
  const { ask, store } = chain(t)
  t.mock.method(store, 'find', async () => undefined as never)
  const { error } = await ask({ names: [FILE] })
  assert.ok(error instanceof TypeError)
})

it('references without things that are kept is a mistake at the start', () => {
  for (const options of [undefined, {}, { resources: {} }, { resources: new MemoryResourceStore() }])
    assert.throws(
      () => references(options as never),
      /^TypeError: references: "resources" must be an UpstreamResources/,
    )
  const resources = new UpstreamResources()
  resources.close()
  assert.throws(
    () => references({ resources, store: 1 } as never),
    /^TypeError: references: there is no option "store"/,
  )
})
