import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Principal } from '../../../lib/core/call/index.ts'
import { hashSecret, memoryKeyDirectory } from '../../../lib/middleware/authenticate/index.ts'
import { bearer, guard } from './admission.ts'

describe('the principal that a key brings with it', () => {
  it('is on the call: its account, its limits, its models, its lines’ regions', async (t) => {
    const limits = { rpm: 60, tpm: 1000 }
    const accountLimits = { rpm: 100, tpm: null, concurrency: 5 }
    const acme = { id: 'acme', limits: accountLimits, lineRegions: ['eu'] }
    const rich = await guard({
      keys: memoryKeyDirectory({
        accounts: [acme, { id: 'globex' }],
        keys: [
          {
            id: 'k',
            account: 'acme',
            secret: 'sk-k',
            limits,
            allowModels: ['chat-small'],
            tags: { team: 'a' },
          },
          { id: 'plain', account: 'globex', secret: 'sk-plain' },
        ],
      }),
    })
    t.after(() => rich.close())
    await rich.ask(bearer('sk-k'))
    await rich.ask(bearer('sk-plain'))
    const [{ mayUseModel, ...principal }, plain] = rich.calls.map((call) => call.principal!) as [
      Principal,
      Principal,
    ]
    assert.deepEqual(principal, {
      accountId: 'acme',
      keyId: 'k',
      accountLimits,
      keyLimits: limits,
      lineRegions: ['eu'],
      tags: { team: 'a' },
    })
    assert.equal(plain.tags, undefined)
    const told = rich.calls.map(({ tags }) => tags && { ...tags })
    assert.deepEqual(told, [{ team: 'a' }, {}], 'the tags of a call without any of its caller')
    assert.deepEqual(['chat-small', 'chat-large'].map(mayUseModel), [true, false])
    assert.deepEqual(plain.keyLimits, { rpm: null, tpm: null })
    assert.deepEqual(plain.accountLimits, { rpm: null, tpm: null, concurrency: null })
    assert.deepEqual([plain.lineRegions, plain.mayUseModel('any')], [undefined, true])
  })

  it('changes with its account, and no other does', () => {
    const directory = memoryKeyDirectory({
      accounts: [{ id: 'acme' }, { id: 'globex' }],
      keys: [
        { id: 'a', account: 'acme', secret: 'sk-a' },
        { id: 'b', account: 'globex', secret: 'sk-b' },
      ],
    })
    const { account } = directory.find(hashSecret('sk-a'))!
    directory.setAccount({ ...account, regions: ['eu'] })
    assert.deepEqual(directory.find(hashSecret('sk-a'))?.account.regions, ['eu'])
    assert.equal(directory.find(hashSecret('sk-b'))?.account.id, 'globex')
    assert.equal(directory.find(hashSecret('sk-b'))?.account.regions, null)
  })
})
