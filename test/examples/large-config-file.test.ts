import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { ConfigEntries, ConfigError } from 'express-model-gateway/config'
import { dump } from 'js-yaml'
import { readConfig, readHere } from '../../examples/gateway/config/read-config.ts'
import { temporaryFolder } from '../support/gateway-process.ts'

/** The file has more than a megabyte then, and is read in a thread. */
const KEYS = 9000

const config = {
  models: [{ id: 'm', kind: 'chat', price: { perRequest: '0.001' } }],
  lines: [{ id: 'l', provider: 'p', protocol: 'openai', baseUrl: 'http://127.0.0.1/v1', models: { m: 'u' } }],
  accounts: Array.from({ length: 900 }, (_, i) => ({ id: `account-${i}`, balance: '10' })),
  keys: Array.from({ length: KEYS }, (_, i) => ({
    ...{ id: `key-${i}`, account: `account-${i % 900}`, secret: `sk-secret-of-a-key-${i}-${'x'.repeat(40)}` },
  })),
}

async function placeOf(t: TestContext, name: string, text: string) {
  const folder = await temporaryFolder()
  t.after(() => folder.remove())
  const configFile = join(folder.path, name)
  await writeFile(configFile, text)
  return { configFile, configOrigin: '--config', region: undefined, env: { SECRET: 'sk-of-env' } } as const
}

describe('a large config file', () => {
  for (const [name, write] of [
    ['a.json', JSON.stringify],
    ['a.yaml', (value: object) => dump(value)],
  ] as const) {
    it(`has the same content as if it were small: ${name}`, async (t) => {
      const keys = [...config.keys, { id: 'first', account: 'account-1', secret: 'env:SECRET' }]
      const place = await placeOf(t, name, write({ ...config, keys }))
      const read = await readConfig(place)
      assert.deepEqual(read, await readHere(place))
      const entries = new ConfigEntries<{ id: string; secret: string }>(read.keys)
      assert.equal([...entries.read()].flat().length, KEYS + 1)
      assert.equal(entries.find('first')?.secret, 'sk-of-env')
    })

    it(`is refused with one line for each fault: ${name}`, async (t) => {
      const keys = [...config.keys, { id: 'odd', account: 'nobody', secret: 'env:NONE', quota: 1 }]
      const place = await placeOf(t, name, write({ ...config, keys, modles: [] }))
      await assert.rejects(readConfig(place), (error) => {
        assert.ok(error instanceof ConfigError)
        const paths = error.faults.map((fault) => fault.split(':')[0])
        assert.deepEqual(paths.sort(), [
          `keys[${KEYS}].account`,
          `keys[${KEYS}].quota`,
          `keys[${KEYS}].secret`,
          'modles',
        ])
        return true
      })
    })
  }

  it('whose objects need far more memory than its text is read, too', async (t) => {
    const place = await placeOf(t, 'a.yaml', `odd: [${'1,'.repeat(1_000_000)}]\n${dump(config)}`)
    await assert.rejects(readConfig(place), { message: 'odd: is not a known member' })
  })
})
