import assert from 'node:assert/strict'
import { afterEach, describe, it } from 'node:test'
import { GatewayError } from '../../../lib/core/errors/index.ts'
import {
  type AccountRecord,
  type AuthenticateOptions,
  authenticate,
  hashSecret,
  type KeyRecord,
  memoryKeyDirectory,
} from '../../../lib/middleware/authenticate/index.ts'
import { type Admission, bearer, guard } from './admission.ts'

const RECORD = memoryKeyDirectory({
  accounts: [{ id: 'acme' }],
  keys: [{ id: 'k', account: 'acme', secret: 'sk' }],
}).find(hashSecret('sk')) as KeyRecord

let app: Admission | undefined
afterEach(async () => {
  await app?.close()
  app = undefined
})

/** The result of a call whose directory answers so. */
async function answered(answer: unknown, more: Partial<AuthenticateOptions> = {}) {
  app = await guard({ keys: { find: () => answer as KeyRecord }, ...more })
  const { status, error } = await app.ask(bearer('sk'))
  const logged = app.logger.lines
    .map(({ message, fields }) => `${message}: ${fields.err ?? fields.reason}`)
    .join()
  await app.close()
  return { status, error, logged, admitted: app.admitted }
}

const NOW = Date.parse('2026-01-01T00:00:00Z')
const account = (members: Partial<AccountRecord>) => ({ account: { ...RECORD.account, ...members } })

/** Members of a record, and the code of the refusal by a gateway in the region "here"; undefined: it is admitted. */
const STATES: readonly [Partial<KeyRecord>, string | undefined][] = [
  [{}, undefined],
  [{ secretUntil: NOW - 1 }, 'invalid_credential'],
  [{ secretUntil: NOW }, 'invalid_credential'],
  [{ secretUntil: NOW + 1 }, undefined],
  [{ secretUntil: 0, enabled: false }, 'invalid_credential'],
  [{ enabled: false }, 'key_disabled'],
  [account({ suspended: true }), 'key_disabled'],
  [account({ suspended: false }), undefined],
  [account({ suspended: true, regions: [] }), 'key_disabled'],
  [{ expiresAt: NOW - 1 }, 'key_expired'],
  [{ expiresAt: NOW }, 'key_expired'],
  [{ expiresAt: NOW + 1 }, undefined],
  [{ expiresAt: 0, allowIps: [] }, 'key_expired'],
  [{ allowIps: ['127.0.0.1'] }, undefined],
  [{ allowIps: ['127.0.0.2'], ...account({ regions: [] }) }, 'ip_not_allowed'],
  [account({ regions: null }), undefined],
  [account({ regions: ['here', 'there'] }), undefined],
  [account({ regions: ['there'] }), 'region_denied'],
]

describe('a record of a key', () => {
  for (const [members, code] of STATES)
    it(`with ${JSON.stringify(members)} ${code ? `is refused: ${code}` : 'is admitted'}`, async (t) => {
      t.mock.timers.enable({ apis: ['Date'], now: NOW })
      const { error, admitted } = await answered({ ...RECORD, ...members }, { region: 'here' })
      assert.deepEqual([error, admitted], [code, code ? 0 : 1])
    })

  it('may come in anything that is like a promise', async () => {
    for (const cacheKeysMs of [0, 4000]) {
      for (const [record, status] of [
        [RECORD, 200],
        [undefined, 401],
      ] as const) {
        // biome-ignore lint/suspicious/noThenProperty: some libraries have promises of their own
        const thenable = { then: (done: (found: unknown) => void) => void setImmediate(done, record) }
        assert.equal((await answered(thenable, { cacheKeysMs })).status, status)
      }
    }
  })

  const { id: _id, ...withoutId } = RECORD
  for (const [name, broken] of Object.entries({
    null: null,
    false: false,
    'a text': 'sk',
    'an object without members': {},
    'a record without an id': withoutId,
    'a record whose id is a number': { ...RECORD, id: 7 },
    'a record without an account': { ...RECORD, account: undefined },
    'a record whose account is null': { ...RECORD, account: null },
    'a record whose account has no id': { ...RECORD, account: { ...RECORD.account, id: undefined } },
    'a record whose account has no limits': { ...RECORD, account: { ...RECORD.account, limits: undefined } },
    'a record without limits': { ...RECORD, limits: undefined },
  }))
    it(`that is ${name} is a fault of the directory, at once and later`, async () => {
      for (const cacheKeysMs of [0, 4000])
        for (const answer of [broken, Promise.resolve(broken)]) {
          const { status, error, logged, admitted } = await answered(answer, { cacheKeysMs })
          assert.deepEqual([status, error, admitted], [500, 'internal_error', 0])
          assert.match(logged, /authenticate: the answer of "keys" is no record of a key/)
        }
    })
})

describe('a directory that does not answer', () => {
  for (const cacheKeysMs of [0, 4000])
    it(`is waited for as long as the app says, and the log says for how long (cacheKeysMs ${cacheKeysMs})`, async () => {
      const { status, error, logged } = await answered(new Promise(() => {}), {
        cacheKeysMs,
        storeTimeoutMs: 20,
      })
      assert.deepEqual([status, error], [500, 'internal_error'])
      assert.equal(
        logged,
        'a request failed because a store gave no answer: the key directory has not answered for 20 ms',
      )
    })

  it('may refuse the call itself, with an error of the gateway', async () => {
    const refusal = () => new GatewayError('billing_unavailable')
    for (const cacheKeysMs of [0, 4000])
      for (const find of [
        () => Promise.reject(refusal()),
        () => {
          throw refusal()
        },
      ]) {
        app = await guard({ keys: { find }, cacheKeysMs })
        const { status, error, text } = await app.ask(bearer('sk'))
        assert.deepEqual([status, error], [503, 'billing_unavailable'])
        assert.equal(JSON.parse(text).request_id, app.calls[0]?.id)
        await app.close()
      }
  })
})

describe('options of authenticate', () => {
  const keys = { find: () => undefined }
  for (const [name, value] of [
    ['keys', {}],
    ['keys', { findAll() {} }],
    ['region', 7],
    ['cacheKeysMs', 5000.5],
    ['cacheKeysMs', -0.5],
    ['maxCachedKeys', 0.5],
    ['staleKeysMs', -1],
    ['storeTimeoutMs', 60_000.5],
    ['onUse', {}],
  ] as const)
    it(`refuse "${name}" of ${JSON.stringify(value)}, by its name`, () => {
      assert.throws(() => authenticate({ keys, [name]: value } as never), {
        name: 'TypeError',
        message: new RegExp(`^authenticate: "${name}" must be `),
      })
    })

  it('may be as small as they can be', () => {
    for (const able of [{ staleKeysMs: 0 }, { storeTimeoutMs: 1e-9 }, { maxCachedKeys: 1 }, { region: 'x' }])
      assert.doesNotThrow(() => authenticate({ keys, ...able }))
  })
})
