import assert from 'node:assert/strict'
import { request } from 'node:http'
import { before, describe, it } from 'node:test'
import {
  authenticate,
  hashSecret,
  type KeyDirectory,
  type KeySeed,
  memoryKeyDirectory,
} from '../../../lib/middleware/authenticate/index.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import { type Admission, type Asked, bearer, guard } from './admission.ts'

const PAST = '2020-01-01T00:00:00Z'
const base = { account: 'acme' }
const seed: KeySeed = {
  accounts: [
    { id: 'acme' },
    { id: 'abroad', regions: ['eu', 'us'] },
    { id: 'home', regions: ['eu', 'local'] },
    { id: 'nowhere', regions: [] },
  ],
  keys: [
    { ...base, id: 'good', secret: 'sk-good' },
    { ...base, id: 'later', secret: 'sk-later', expiresAt: '2999-01-01T00:00:00Z' },
    { ...base, id: 'disabled', secret: 'sk-disabled', enabled: false },
    { ...base, id: 'expired', secret: 'sk-expired', expiresAt: PAST },
    { ...base, id: 'far', secret: 'sk-far', allowIps: ['192.0.2.0/24'] },
    { ...base, id: 'nobody', secret: 'sk-nobody', allowIps: [] },
    { id: 'abroad', account: 'abroad', secret: 'sk-abroad' },
    { id: 'home', account: 'home', secret: 'sk-home' },
    { id: 'nowhere', account: 'nowhere', secret: 'sk-nowhere' },
    { ...base, id: 'd-e-i', secret: 'sk-d-e-i', enabled: false, expiresAt: PAST, allowIps: [] },
    { ...base, id: 'e-i', secret: 'sk-e-i', expiresAt: PAST, allowIps: [] },
    { id: 'i-r', account: 'abroad', secret: 'sk-i-r', allowIps: [] },
    { ...base, id: 'dots', secret: 'aaaa.bbbb.cccc' },
    { ...base, id: 'equals', secret: 'sk-a+b/c==' },
  ],
}

let app: Admission
const lookedUp: string[] = []
const memory = memoryKeyDirectory(seed)
const keys: KeyDirectory = {
  find(secretHash) {
    lookedUp.push(secretHash)
    return memory.find(secretHash)
  },
}
const cleanUp = cleaningUp()
before(async () => {
  app = await guard({ keys, region: 'local' })
  cleanUp.after(() => app.close())
})

/** Asks on both protocols and expects the same refusal, without the handler behind having run. */
async function refused(headers: Record<string, string>, code: string, status: number): Promise<Asked> {
  const before = app.admitted
  const openAi = await app.ask(headers)
  assert.deepEqual([openAi.error, openAi.status], [code, status])
  const anthropic = await app.ask(headers, '/v1/messages')
  const type = status === 401 ? 'authentication_error' : 'permission_error'
  assert.deepEqual([anthropic.error, anthropic.status], [type, status])
  assert.equal(app.admitted, before)
  return openAi
}

async function admitted(headers: Record<string, string>, key: string): Promise<void> {
  for (const path of ['/v1/chat/completions', '/v1/messages']) {
    const before = app.admitted
    assert.equal((await app.ask(headers, path)).key, key)
    assert.equal(app.admitted, before + 1)
  }
}

describe('a request is admitted with', () => {
  it('a good key in either header, or the same one in both', async () => {
    await admitted(bearer('sk-good'), 'good')
    await admitted({ 'x-api-key': 'sk-good' }, 'good')
    await admitted({ ...bearer('sk-good'), 'x-api-key': 'sk-good' }, 'good')
    await admitted(bearer('sk-later'), 'later')
    await admitted(bearer('sk-home'), 'home')
    await admitted(bearer('sk-a+b/c=='), 'equals')
  })

  it('any case of the scheme, and any room around the key', async () => {
    await admitted({ authorization: 'bearer sk-good' }, 'good')
    await admitted({ authorization: 'BEARER   sk-good  ' }, 'good')
    await admitted({ authorization: 'Bearer', 'x-api-key': ' sk-good ' }, 'good')
  })
})

describe('a request is refused with', () => {
  it('no key: missing_credential', async () => {
    await refused({}, 'missing_credential', 401)
    await refused({ authorization: '' }, 'missing_credential', 401)
    await refused({ authorization: 'Bearer ' }, 'missing_credential', 401)
    await refused({ 'x-api-key': '  ' }, 'missing_credential', 401)
  })

  it('an unknown key: invalid_credential', async () => {
    for (const key of ['sk-other', 'sk-good2', 'SK-GOOD', 'good', hashSecret('sk-good'), 'x'.repeat(4000)])
      await refused(bearer(key), 'invalid_credential', 401)
  })

  it('a key longer than 512 characters: invalid_credential, without a look-up', async () => {
    lookedUp.length = 0
    await refused(bearer('x'.repeat(513)), 'invalid_credential', 401)
    assert.deepEqual(lookedUp, [])
    await refused(bearer('x'.repeat(512)), 'invalid_credential', 401)
    assert.deepEqual(lookedUp, [hashSecret('x'.repeat(512))])
  })

  it('two different keys: invalid_credential, though each is good', async () => {
    lookedUp.length = 0
    await refused({ ...bearer('sk-good'), 'x-api-key': 'sk-later' }, 'invalid_credential', 401)
    assert.deepEqual(lookedUp, [])
  })

  it('another scheme, Basic with a good key included: invalid_credential', async () => {
    const basic = Buffer.from('sk-good:').toString('base64')
    for (const authorization of [
      `Basic ${basic}`,
      'Basic sk-good',
      'Token sk-good',
      'sk-good',
      'Bearersk-good',
    ])
      await refused({ authorization }, 'invalid_credential', 401)
  })

  it('one header sent twice with two keys: invalid_credential', async () => {
    const before = app.admitted
    const status = await new Promise((resolve) => {
      const req = request(`${app.url}/v1/x`, (res) => res.resume().on('end', () => resolve(res.statusCode)))
      req.setHeader('x-api-key', ['sk-good', 'sk-later'])
      req.end()
    })
    assert.equal(status, 401)
    assert.equal(app.admitted, before)
  })

  it('a disabled key: key_disabled; an expired one: key_expired', async () => {
    await refused(bearer('sk-disabled'), 'key_disabled', 403)
    await refused({ 'x-api-key': 'sk-expired' }, 'key_expired', 403)
  })

  it('an address off the allow-list, or an empty list: ip_not_allowed', async () => {
    await refused(bearer('sk-far'), 'ip_not_allowed', 403)
    await refused(bearer('sk-nobody'), 'ip_not_allowed', 403)
  })

  it('an account that excludes this region: region_denied', async () => {
    await refused(bearer('sk-abroad'), 'region_denied', 403)
    await refused(bearer('sk-nowhere'), 'region_denied', 403)
  })

  it('in the order disabled, expired, address, region', async () => {
    await refused(bearer('sk-d-e-i'), 'key_disabled', 403)
    await refused(bearer('sk-e-i'), 'key_expired', 403)
    await refused(bearer('sk-i-r'), 'ip_not_allowed', 403)
  })

  it('is known to the call log where the key is known', async () => {
    await app.ask(bearer('sk-disabled'))
    assert.equal(app.calls.at(-1)?.principal?.keyId, 'disabled')
    await app.ask(bearer('sk-nobody-knows'))
    assert.equal(app.calls.at(-1)?.principal, null)
  })

  it('learns nothing of the key it sent, nor does the log', async () => {
    for (const key of ['sk-good', 'sk-disabled', 'sk-expired', 'sk-far', 'sk-abroad', 'sk-unknown']) {
      const { text } = await app.ask(bearer(key))
      assert.equal(text.includes(key), false)
      assert.equal(text.includes(hashSecret(key)), false)
    }
    assert.deepEqual(app.logger.lines, [])
    // All that it holds but the request itself, which has the key in its head.
    const parts = app.calls.map((call) => Object.entries(call).filter(([name]) => name !== 'target'))
    assert.doesNotMatch(JSON.stringify(parts), /sk-(?:good|disabled|unknown)/)
  })
})

describe('a console token', () => {
  const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const token = (header: unknown, signature = 'c2ln') => `${part(header)}.${part({ sub: 'me' })}.${signature}`

  it('is an invalid_credential without a look-up, signed or not', async () => {
    lookedUp.length = 0
    for (const key of [
      token({ alg: 'HS256', typ: 'JWT' }),
      token({ alg: 'none' }, ''),
      token({ kid: 'x', alg: 'ES256' }),
      token({ alg: 'RS256' }, 'x'.repeat(600)),
    ]) {
      await refused(bearer(key), 'invalid_credential', 401)
      await refused({ 'x-api-key': key }, 'invalid_credential', 401)
    }
    assert.deepEqual(lookedUp, [])
  })

  it('is not every key with two dots: what only looks like one is looked up', async () => {
    await admitted(bearer('aaaa.bbbb.cccc'), 'dots')
    lookedUp.length = 0
    const alike = [
      token('alg'),
      token(['alg']),
      token(null),
      token({ typ: 'JWT' }),
      `${token({ alg: 'x' })}.d.e`,
    ]
    for (const key of alike) await refused(bearer(key), 'invalid_credential', 401)
    assert.deepEqual([...new Set(lookedUp)], alike.map(hashSecret))
  })
})

describe('options that cannot work', () => {
  it('are refused at construction, with what is wrong', () => {
    assert.throws(() => authenticate({} as never), /"keys" must be a KeyDirectory/)
    for (const cacheKeysMs of [-1, 5001, Number.NaN])
      assert.throws(() => authenticate({ keys, cacheKeysMs }), /"cacheKeysMs" must be between 0 and 5000/)
    assert.throws(() => authenticate({ keys, maxCachedKeys: 0 }), /"maxCachedKeys"/)
    for (const storeTimeoutMs of [-1, 0, 60_001, Number.NaN])
      assert.throws(
        () => authenticate({ keys, storeTimeoutMs }),
        /"storeTimeoutMs" must be above 0 and at most 60000/,
      )
    for (const able of [
      { storeTimeoutMs: 0.5 },
      { storeTimeoutMs: 60_000 },
      { cacheKeysMs: 0 },
      { cacheKeysMs: 5000 },
      { maxCachedKeys: 1 },
    ])
      assert.doesNotThrow(() => authenticate({ keys, ...able }))
    const accounts = [{ id: 'acme' }]
    assert.throws(
      () => memoryKeyDirectory({ accounts, keys: [{ id: 'k', account: 'b', secret: 's' }] }),
      /"k".*"b"/,
    )
    const key = { id: 'k', account: 'acme', secret: 's', expiresAt: 'soon' }
    assert.throws(
      () => memoryKeyDirectory({ accounts, keys: [key] }),
      /^TypeError: memoryKeyDirectory: "expiresAt" .*"k"/,
    )
  })
})
