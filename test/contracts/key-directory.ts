import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { hashSecret, type KeyDirectory, type KeySeed } from '../../lib/middleware/authenticate/index.ts'
import { cleaningUp } from '../support/clean-up.ts'

/** A directory to try, and how to be done with it. */
export interface KeyDirectoryUnderTest {
  keys: KeyDirectory
  close(): Promise<void>
}

const SEED: KeySeed = {
  accounts: [
    { id: 'plain' },
    {
      id: 'full',
      limits: { rpm: 600, tpm: 5_000_000_000, concurrency: 20 },
      regions: ['local'],
      lineRegions: ['us', 'eu'],
    },
  ],
  keys: [
    { id: 'key_plain', account: 'plain', secret: 'sk-plain' },
    {
      id: 'key_full',
      account: 'full',
      secret: 'sk-full',
      enabled: false,
      expiresAt: '2027-01-01T01:00:00+01:00',
      allowIps: ['10.0.0.0/8'],
      allowModels: [],
      limits: { rpm: 60, tpm: null },
      tags: { team: 'search' },
    },
  ],
}

/** The contract of every key directory: the same answers for the same accounts and keys. */
export function keyDirectoryContract(
  name: string,
  open: (seed: KeySeed) => Promise<KeyDirectoryUnderTest>,
  skip: string | false = false,
): void {
  describe(`key directory: ${name}`, { skip }, () => {
    let opened: KeyDirectoryUnderTest
    const cleanUp = cleaningUp()
    before(async () => {
      opened = await open(SEED)
      cleanUp.after(() => opened.close())
    })
    const find = async (secret: string) => opened.keys.find(hashSecret(secret))

    it('finds many keys at once, and omits unknown ones', async (t) => {
      if (!opened.keys.findAll) return t.diagnostic('the directory finds one at a time')
      const hashes = ['sk-plain', 'sk-none', 'sk-full'].map(hashSecret)
      const many = Array.from({ length: 1100 }, (_, i) => hashSecret(`sk-${i}`))
      const found = await opened.keys.findAll([...hashes, ...many])
      assert.equal(found.size, 2)
      for (const secret of ['sk-plain', 'sk-full'])
        assert.deepEqual(found.get(hashSecret(secret)), await find(secret))
      assert.equal((await opened.keys.findAll([])).size, 0)
    })

    it('finds each of many that are asked for at the same time', async () => {
      const secrets = Array.from(
        { length: 30 },
        (_, i) => ['sk-plain', 'sk-none', 'sk-full'][i % 3] as string,
      )
      const found = await Promise.all(secrets.map(find))
      const ids = secrets.map((secret) => ({ 'sk-plain': 'key_plain', 'sk-full': 'key_full' })[secret])
      assert.deepEqual(
        found.map((key) => key?.id),
        ids,
      )
    })

    it('fills in missing members: enabled, unlimited, no lists', async () => {
      assert.deepEqual(await find('sk-plain'), {
        id: 'key_plain',
        account: {
          id: 'plain',
          limits: { rpm: null, tpm: null, concurrency: null },
          regions: null,
          lineRegions: null,
          suspended: false,
        },
        enabled: true,
        expiresAt: null,
        allowIps: null,
        allowModels: null,
        limits: { rpm: null, tpm: null },
      })
    })

    it('returns a key with its account, and an empty list remains empty', async () => {
      assert.deepEqual(await find('sk-full'), {
        id: 'key_full',
        account: {
          id: 'full',
          limits: { rpm: 600, tpm: 5_000_000_000, concurrency: 20 },
          regions: ['local'],
          lineRegions: ['us', 'eu'],
          suspended: false,
        },
        enabled: false,
        expiresAt: Date.parse('2027-01-01T00:00:00Z'),
        allowIps: ['10.0.0.0/8'],
        allowModels: [],
        limits: { rpm: 60, tpm: null },
        tags: { team: 'search' },
      })
    })

    it('finds nothing by a secret, an id or another hash', async () => {
      assert.equal(await opened.keys.find('sk-plain'), undefined)
      assert.equal(await opened.keys.find('key_plain'), undefined)
      assert.equal(await opened.keys.find(''), undefined)
      assert.equal(await find('sk-else'), undefined)
    })
  })
}
