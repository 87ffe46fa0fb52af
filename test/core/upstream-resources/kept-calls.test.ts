import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import type { OpenCall } from '../../../lib/core/call/index.ts'
import { GatewayError } from '../../../lib/core/errors/index.ts'
import type { Reference } from '../../../lib/core/operations/index.ts'
import {
  MemoryResourceStore,
  someUpstreamResources,
  type UpstreamResource,
  UpstreamResources,
} from '../../../lib/core/upstream-resources/index.ts'
import { recordingLogger } from '../../support/app-server.ts'

const NOW = 1_700_000_000_000

/** A call, as far as resources need it. */
const callOf = (accountId: string | undefined, members: object = {}) =>
  ({
    principal: accountId === undefined ? null : { accountId, keyId: 'k' },
    model: null,
    refuse: (...given: ConstructorParameters<typeof GatewayError>) => new GatewayError(...given),
    ...members,
  }) as unknown as OpenCall
const acme = callOf('acme')
const reference = (id: string, kind = 'file', place = 'input[0]') =>
  ({ kind, id, place: () => place }) as unknown as Reference

function opened(t: TestContext, options: object = {}) {
  const store = new MemoryResourceStore()
  const logger = recordingLogger()
  // A second mock of a test would be restored to the first one.
  if (Date.now() !== NOW) t.mock.method(Date, 'now', () => NOW)
  const resources = new UpstreamResources({ store, logger, ...options })
  t.after(() => resources.close())
  const stored = async (id: string, kind = 'file', account = 'acme') =>
    (await store.find(account, [{ kind, id }]))[0]
  return { store, resources, stored, logger }
}

describe('a resource created at a line', () => {
  it('is recorded for the account, the key and the model of the call', async (t) => {
    const { resources, stored } = opened(t)
    const call = callOf('acme', { request: { model: { id: 'm' } }, model: 'other' })
    await resources.remember(call, 'l', [{ kind: 'file', id: 'files/a', tokens: 1.2 }])
    const thing = {
      kind: 'file',
      id: 'a',
      account: 'acme',
      key: 'k',
      line: 'l',
      model: 'm',
      tokens: 2,
      createdAt: NOW,
      expiresAt: null,
    }
    assert.deepEqual(await stored('a'), thing)
    await resources.remember(callOf('acme', { model: 'n' }), 'l', [{ kind: 'file', id: 'b' }])
    assert.deepEqual(await stored('b'), { ...thing, id: 'b', model: 'n', tokens: 0 })
    await resources.remember(callOf(undefined), 'l', [{ kind: 'file', id: 'c' }])
    assert.deepEqual(await stored('c', 'file', ''), {
      ...thing,
      id: 'c',
      account: '',
      key: null,
      model: null,
      tokens: 0,
    })
  })

  it('has a limited lifetime if upstreams delete its kind themselves', async (t) => {
    for (const [options, keepResourcesMs] of [
      [{}, 30 * 86_400_000],
      [{ keepResourcesMs: 1000 }, 1000],
    ] as const) {
      const { resources, stored } = opened(t, options)
      const kinds = ['response', 'message', 'item', 'container', 'audio', 'file', 'conversation']
      await resources.remember(
        acme,
        'l',
        kinds.map((kind) => ({ kind, id: 'a' })),
      )
      const ends = await Promise.all(kinds.map(async (kind) => (await stored('a', kind))?.expiresAt))
      assert.deepEqual(ends, [...Array(5).fill(NOW + keepResourcesMs), null, null])
      await resources.remember(acme, 'l', [{ kind: 'item', id: 'b', expiresAt: 7 }])
      assert.equal((await stored('b', 'item'))?.expiresAt, 7)
    }
  })

  it('is neither recorded nor looked up by an invalid id', async (t) => {
    const { resources, store } = opened(t)
    const [remember, find] = [t.mock.method(store, 'remember'), t.mock.method(store, 'find')]
    const odd = ['', 'x'.repeat(1025), '漢'.repeat(342), 'a\ud800'].map((id) => ({ kind: 'file', id }))
    await resources.remember(acme, 'l', odd)
    assert.deepEqual(await resources.find(acme, odd), [])
    assert.deepEqual([remember.mock.callCount(), find.mock.callCount()], [0, 0])
    const longest = { kind: 'file', id: `x${'漢'.repeat(341)}` }
    await resources.remember(acme, 'l', [...odd, longest])
    assert.deepEqual(
      (await resources.find(acme, [...odd, longest])).map(({ id }) => id),
      [longest.id],
    )
  })
})

describe('the resources of an account', () => {
  const thing = (id: string, members: Partial<UpstreamResource> = {}): UpstreamResource => ({
    ...{ kind: 'file', id, account: 'acme', key: null, line: 'l', model: null, tokens: 0, createdAt: 1 },
    expiresAt: null,
    ...members,
  })
  const ids = (things: readonly UpstreamResource[]) => things.map(({ id }) => id)

  it('are found until they expire', async (t) => {
    const { resources, store } = opened(t)
    await store.remember([
      thing('a'),
      thing('b', { expiresAt: NOW }),
      thing('c', { expiresAt: NOW + 1 }),
      thing('d', { account: 'x' }),
    ])
    const names = ['a', 'b', 'c', 'd'].map((id) => ({ kind: 'file', id }))
    assert.deepEqual(ids(await resources.find(acme, names)), ['a', 'c'])
    const page = { lines: ['l'], order: 'oldest', limit: 9 } as const
    assert.deepEqual(ids(await resources.list(acme, 'file', page)), ['a', 'c'])
  })

  it('keep their place in a list after they have expired, or were deleted', async (t) => {
    const { resources, store } = opened(t)
    await store.remember([thing('a', { expiresAt: NOW - 1 }), thing('b')])
    assert.equal((await resources.place(acme, { kind: 'file', id: 'a' }))?.id, 'a')
    await resources.forget(acme, { kind: 'file', id: 'files/b' })
    assert.deepEqual(await resources.find(acme, [{ kind: 'file', id: 'b' }]), [])
    assert.equal((await resources.place(acme, { kind: 'file', id: 'files/b' }))?.id, 'b')
    assert.equal(await resources.place(callOf('x'), { kind: 'file', id: 'b' }), undefined)
    await resources.forget(acme, { kind: 'file', id: 'none' })
    assert.equal(await resources.place(acme, { kind: 'file', id: 'none' }), undefined)
  })

  it('are gone until the line that reported them gone creates them again', async (t) => {
    const { resources } = opened(t)
    resources.noteGone(thing('a'))
    assert.deepEqual(
      [
        resources.isGone(thing('a')),
        resources.isGone(thing('a', { line: 'm' })),
        resources.isGone(thing('b')),
      ],
      [true, false, false],
    )
    await resources.remember(acme, 'l', [{ kind: 'file', id: 'a' }])
    assert.equal(resources.isGone(thing('a')), false)
  })

  it('bind a call to the line that has all of them', async (t) => {
    const { resources, store } = opened(t)
    await store.remember([
      thing('a'),
      thing('b'),
      thing('c', { kind: 'vector_store' }),
      thing('d', { line: 'm' }),
    ])
    const call = callOf('acme')
    const found = await resources.pin(call, [
      reference('c', 'vector_store'),
      reference('files/a'),
      reference('b'),
    ])
    assert.deepEqual([ids(found), call.pin], [['c', 'a', 'b'], { line: 'l', holds: 'the vector store' }])
    await resources.pin(call, [reference('a')])
    assert.equal(call.pin?.holds, 'the vector store')
    await assert.rejects(
      resources.pin(callOf('acme'), [reference('a'), reference('d', 'file', 'input[1]')]),
      {
        code: 'invalid_request',
        param: 'input[1]',
        message:
          'The objects that the request names are stored in different places. Name only objects of one place.',
      },
    )
    await assert.rejects(resources.pin(callOf('acme', { left: true }), [reference('a')]), {
      code: 'client_closed_request',
    })
  })

  const MISSING: [reference: Reference, error: object][] = [
    [
      reference('x'),
      { code: 'not_found', message: 'There is no stored file with this id (input[0]), or it has expired.' },
    ],
    [
      reference('x', 'vector_store', ''),
      { code: 'not_found', message: 'There is no stored vector store with this id, or it has expired.' },
    ],
    [
      reference('x', 'response'),
      {
        code: 'not_found',
        message:
          'There is no stored response with this id (input[0]), or it has expired. Send the conversation as input instead.',
      },
    ],
    [
      reference('x', 'item'),
      {
        code: 'invalid_request',
        param: 'input[0]',
        message:
          'There is no stored item with this id (input[0]), or it has expired. Send whole items: set "store" to false.',
      },
    ],
    [reference('x', 'message'), { code: 'not_found', details: { error_code: 'thread_not_found' } }],
  ]
  for (const [missing, error] of MISSING)
    it(`are reported as missing in a message: ${missing.kind}`, async (t) => {
      const { resources } = opened(t)
      await assert.rejects(resources.pin(callOf('acme'), [missing]), (thrown: GatewayError) => {
        const told = Object.fromEntries(
          Object.keys(error).map((member) => [member, thrown[member as keyof GatewayError]]),
        )
        assert.equal(thrown.details?.error_code, 'details' in error ? 'thread_not_found' : undefined)
        if (!('details' in error)) assert.deepEqual(told, error)
        return thrown.code === ('code' in error && error.code)
      })
    })
})

describe('a resource store that is away', () => {
  it('makes calls fail until it is back', async (t) => {
    const changes: boolean[] = []
    let ms = 0
    t.mock.method(performance, 'now', () => ms)
    const { resources, store } = opened(t, { onStoreChange: (away: boolean) => void changes.push(away) })
    assert.equal(resources.ready(acme), undefined)
    const failing = (['find', 'remember', 'list'] as const).map((name) =>
      t.mock.method(store, name, () => Promise.reject(new Error('away'))),
    )
    const name = { kind: 'file', id: 'a' }
    const away = {
      code: 'internal_error',
      message: 'Stored objects cannot be looked up or recorded at the moment. Retry.',
      foreseen: true,
    }
    await assert.rejects(resources.find(acme, [name]), away)
    // One that fails may do so alone.
    ms = 1499
    await assert.rejects(resources.remember(acme, 'l', [name]), away)
    assert.equal(resources.ready(acme), undefined)
    ms = 1500
    await assert.rejects(resources.list(acme, 'file', { lines: [], order: 'oldest', limit: 1 }), away)
    await assert.rejects(resources.ready(acme) ?? assert.fail('it is away'), away)
    assert.deepEqual(changes, [true])
    for (const { mock } of failing) mock.restore()
    await resources.ready(acme)
    assert.deepEqual([resources.ready(acme), changes], [undefined, [true, false]])
  })

  it('is checked like any other option', () => {
    for (const options of [
      { store: {} },
      { keepResourcesMs: 0 },
      { storeTimeoutMs: -1 },
      { logger: 7 },
      { onStoreChange: 7 },
      { other: 1 },
    ])
      assert.throws(() => new UpstreamResources(options as object), /^TypeError: UpstreamResources: /)
    const resources = new UpstreamResources()
    resources.close()
    assert.deepEqual(
      [someUpstreamResources.accepts(resources), someUpstreamResources.accepts({})],
      [true, false],
    )
  })
})
