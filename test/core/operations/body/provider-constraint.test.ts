import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { GatewayError } from '../../../../lib/core/errors/index.ts'
import { valueFault } from '../../../../lib/core/operations/body/body-schema.ts'
import {
  constraintOf,
  givenConstraint,
  providerConstraintSchema,
} from '../../../../lib/core/operations/body/provider-constraint.ts'
import { personOf } from '../../../../lib/core/operations/index.ts'

type Json = Record<string, unknown>

const constraint = (provider: unknown) => constraintOf({ provider, source: 'provider' })

describe('the provider constraint', () => {
  it('is that of the body, or else of the header', () => {
    const header = '{"only":["a"]}'
    const ofHeader = { provider: { only: ['a'] }, source: 'X-Gateway-Provider' }
    assert.deepEqual(givenConstraint({}, header), { provider: {}, source: 'provider' })
    assert.deepEqual(givenConstraint({}, undefined), { provider: {}, source: 'provider' })
    for (const none of [undefined, null]) {
      assert.deepEqual(givenConstraint(none, header), ofHeader)
      assert.deepEqual(givenConstraint(none, [header]), ofHeader)
      assert.equal(givenConstraint(none, undefined), undefined)
    }
  })

  it('contains all given members, with prices in billionths', () => {
    const max_price = { prompt: 0.15, completion: '12.5', request: 0, image: 5e12 }
    const said = {
      only: ['a'],
      ignore: ['b'],
      order: ['c'],
      allow_fallbacks: false,
      sort: 'latency',
      max_price,
    }
    assert.deepEqual(constraint({ ...said, region: ['eu', 'us'] }), {
      only: ['a'],
      ignore: ['b'],
      order: ['c'],
      allowFallbacks: false,
      sort: 'latency',
      maxPrice: {
        prompt: 150_000_000n,
        completion: 12_500_000_000n,
        request: 0n,
        image: 999_999_999_999_000_000_000n,
      },
      regions: ['eu', 'us'],
    })
  })

  it('is absent if nothing is given: other lines may serve', () => {
    const nothing = { only: undefined, ignore: undefined, order: undefined, sort: undefined }
    const rest = { allowFallbacks: true, maxPrice: undefined, regions: undefined }
    assert.deepEqual(constraint({}), { ...nothing, ...rest })
    assert.deepEqual(constraint({ region: 'eu', max_price: { prompt: 1 } }), {
      ...nothing,
      ...rest,
      regions: ['eu'],
      maxPrice: { prompt: 1_000_000_000n, completion: undefined, request: undefined, image: undefined },
    })
  })

  it('is within its bounds', () => {
    const names = (count: number, name = 'a') => Array.from({ length: count }, () => name)
    const lists = {
      fit: [[], names(100), ['x'.repeat(200)]],
      unfit: [names(101), [''], ['x'.repeat(201)], 'a', [1]],
    }
    const price = {
      fit: [0, 0.5, 1e15, '0', '0.15', '999999999999.999999999'],
      unfit: [
        -0.1,
        '',
        '-1',
        '1.',
        '.5',
        '1,5',
        '1.1234567890',
        '1234567890123',
        ' 1',
        '1x',
        null,
        Number.NaN,
      ],
    }
    const rows: Record<string, { fit: unknown[]; unfit: unknown[] }> = {
      only: lists,
      ignore: lists,
      order: lists,
      allow_fallbacks: { fit: [true, false], unfit: ['true', null] },
      sort: { fit: ['price', 'latency', 'throughput'], unfit: ['', 'speed'] },
      region: { fit: ['eu', ...lists.fit], unfit: ['', ...lists.unfit.filter((each) => each !== 'a')] },
      max_price: { fit: [{}], unfit: [{ audio: 1 }, 1] },
      further: { fit: [undefined], unfit: [1] },
    }
    const accepts = (body: Json) => valueFault(providerConstraintSchema, body, []) === undefined
    for (const [member, { fit, unfit }] of Object.entries(rows)) {
      for (const value of fit)
        assert.equal(accepts(value === undefined ? {} : { [member]: value }), true, member)
      for (const value of unfit)
        assert.equal(accepts({ [member]: value }), false, `${member}: ${String(value)}`)
    }
    for (const member of ['prompt', 'completion', 'request', 'image']) {
      for (const value of price.fit)
        assert.equal(accepts({ max_price: { [member]: value } }), true, String(value))
      for (const value of price.unfit)
        assert.equal(accepts({ max_price: { [member]: value } }), false, String(value))
    }
  })

  describe('that cannot be met', () => {
    const refused = (param: string, words: RegExp) => (error: unknown) =>
      error instanceof GatewayError &&
      error.code === 'invalid_request' &&
      error.param === param &&
      words.test(error.message)
    /** Names that come to so many bytes of JSON. */
    function ofBytes(bytes: number, char = 'x'): Json {
      const only = Array.from({ length: 24 }, () => char.repeat(80))
      const rest = bytes - Buffer.byteLength(JSON.stringify({ only: [...only, ...Array(11).fill('')] }))
      const full = Math.floor(rest / 11)
      return { only: [...only, ...Array(10).fill('y'.repeat(full)), 'y'.repeat(rest - 10 * full)] }
    }

    it('is refused with the name of its source', () => {
      assert.throws(() => constraint({ onyl: [] }), refused('provider.onyl', /not a known member/))
      const header = { provider: { sort: 'x' }, source: 'X-Gateway-Provider' } as const
      assert.throws(
        () => constraintOf(header),
        refused('X-Gateway-Provider.sort', /X-Gateway-Provider\.sort/),
      )
    })

    it('is refused in a header that is not JSON', () => {
      for (const header of ['', '{', 'only=a', ['{}', '{}']])
        assert.throws(
          () => givenConstraint(undefined, header),
          refused('X-Gateway-Provider', /must hold a JSON object/),
        )
    })

    it('is refused beyond 4096 bytes', () => {
      for (const char of ['x', 'é']) {
        const longest = ofBytes(4096, char)
        assert.equal(Buffer.byteLength(JSON.stringify(longest)), 4096)
        assert.deepEqual(constraint(longest).only, longest.only)
        assert.throws(() => constraint(ofBytes(4097, char)), refused('provider', /longer than 4096 bytes/))
      }
      const header = (bytes: number) => givenConstraint(undefined, JSON.stringify(ofBytes(bytes)))
      assert.deepEqual(header(4096)?.provider, ofBytes(4096))
      assert.throws(() => header(4097), refused('X-Gateway-Provider', /longer than 4096 bytes/))
    })
  })
})

describe('the user that a body names', () => {
  const session = '0a1b2c3d-0000-1111-2222-333344445555'
  const rows: [name: unknown, person: unknown][] = [
    ['ann', 'ann'],
    ['', ''],
    [`user_a_account_b_session_${session}`, 'user_a_account_b'],
    [`user_a_session_${session}x`, `user_a_session_${session}x`],
    [`user_a_session_${session.slice(1)}`, `user_a_session_${session.slice(1)}`],
    [{ device_id: 'a', account_uuid: 'b', session_id: session }, 'user_a_account_b'],
    [{ device_id: 'a', account_uuid: 7, session_id: '' }, 'user_a_account_'],
    [{ device_id: 'a', session_id: 's' }, 'user_a_account_'],
  ]
  const textOf = (name: unknown) => (typeof name === 'string' ? name : JSON.stringify(name))
  for (const [name, person] of rows)
    it(`is the same in each session: ${textOf(name)}`, () => assert.equal(personOf(textOf(name)), person))

  it('is returned unchanged if it names no device or session', () => {
    for (const name of [
      '{',
      '{}',
      '{"device_id":"a"}',
      '{"session_id":"a"}',
      '{"device_id":7,"session_id":"a"}',
    ])
      assert.equal(personOf(name), name)
  })
})
