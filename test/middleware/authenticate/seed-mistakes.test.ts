import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { hashSecret, memoryKeyDirectory } from '../../../lib/middleware/authenticate/index.ts'

describe('memoryKeyDirectory', () => {
  it('refuses seeds that are no lists, in one line that says what to write', () => {
    const accounts = [{ id: 'acme' }]
    for (const [seed, told] of [
      [undefined, /"accounts" must be an array of accounts, such as .*, not undefined$/],
      [null, /its options must be an object, such as { accounts, keys }, not null$/],
      [[{ id: 'k' }], /its options must be an object, .*not an array$/],
      [{ keys: [] }, /"accounts" must be an array/],
      [{ accounts: { acme: {} }, keys: [] }, /"accounts" must be an array .*, not an object$/],
      [{ accounts }, /"keys" must be an array of keys/],
      [{ accounts, keys: ['sk-1'] }, /"keys" must be an array of keys/],
      [{ accounts, keys: [{ id: 'k', account: 'acme' }] }, /"keys" must be an array of keys/],
    ] as const)
      assert.throws(() => memoryKeyDirectory(seed as never), {
        name: 'TypeError',
        message: new RegExp(`^memoryKeyDirectory: ${told.source}`),
      })
  })

  it('takes a whole config, of which it needs no more than accounts and keys', () => {
    const keys = [{ id: 'k', account: 'acme', secret: 'sk' }]
    const config = { accounts: [{ id: 'acme' }], keys, models: [], lines: [] }
    assert.equal(memoryKeyDirectory(config).find(hashSecret('sk'))?.id, 'k')
  })

  it('refuses the env:NAME of a config that was not loaded, which would be the secret itself', () => {
    const keys = [{ id: 'k', account: 'acme', secret: 'env:ACME_KEY' }]
    assert.throws(() => memoryKeyDirectory({ accounts: [{ id: 'acme' }], keys }), {
      message:
        /^memoryKeyDirectory: the "secret" of the key "k" names a variable, which only loadConfig reads/,
    })
  })
})
