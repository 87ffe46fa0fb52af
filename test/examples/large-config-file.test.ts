import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { ConfigEntries, ConfigError, type KeyEntry } from 'express-model-gateway/config'
import { dump, load } from 'js-yaml'
import { type ReadConfig, readConfig, readHere } from '../../examples/gateway/config/read-config.ts'
import { listsInYaml, parseInParts } from '../../examples/gateway/config/yaml-parts.ts'
import { temporaryFolder } from '../support/gateway-process.ts'

/** The file has more than a megabyte then, and is read in a thread. */
const KEYS = 1900

const config = {
  models: [{ id: 'm', kind: 'chat', price: { perRequest: '0.001' } }],
  lines: [{ id: 'l', provider: 'p', protocol: 'openai', baseUrl: 'http://127.0.0.1/v1', models: { m: 'u' } }],
  accounts: Array.from({ length: 100 }, (_, i) => ({ id: `account-${i}`, balance: '10' })),
  keys: Array.from({ length: KEYS }, (_, i) => ({
    ...{
      id: `key-${i}`,
      account: `account-${i % 100}`,
      secret: `sk-secret-of-a-key-${i}-${'x'.repeat(480)}`,
    },
  })),
}

async function placeOf(t: TestContext, name: string, text: string) {
  const folder = await temporaryFolder()
  t.after(() => folder.remove())
  const configFile = join(folder.path, name)
  await writeFile(configFile, text)
  return { configFile, configOrigin: '--config', region: undefined, env: { SECRET: 'sk-of-env' } } as const
}

function entriesOf({ config }: ReadConfig): ConfigEntries<KeyEntry> {
  return new ConfigEntries<KeyEntry>(config.keys)
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
      const { isKnown: _, ...here } = await readHere(place)
      assert.deepEqual(read, here)
      const entries = entriesOf(read)
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

  const limits = { rpm: 60, tpm: 20_000 }
  const note = 'a text\n- id: none\n  - id: of a list\n\nkeys:\n  - none'
  const noted = { ...config, keys: config.keys.slice(0, 1500).map((key) => ({ ...key, note, limits })) }
  const apart = { ...noted, keys: noted.keys.map((key) => ({ ...key, limits: { ...limits } })) }
  let written: Promise<unknown> | undefined
  for (const [how, text] of [
    ['with indented lists', dump(apart)],
    ['with lists that are not indented', dump(apart, { seqNoIndent: true })],
    ['with the line breaks of Windows', dump(apart).replaceAll('\n', '\r\n')],
    ['with comments', dump(apart).replaceAll(/^ {2}- /gm, '# comment\n\n  # - comment\n$&')],
    ['with lists in brackets', dump(apart, { flowLevel: 1 })],
    ['with anchors', dump(noted)],
  ] as const) {
    it(`of YAML has the content that was written, ${how}`, async (t) => {
      written ??= readHere(await placeOf(t, 'a.json', JSON.stringify(noted))).then(({ config }) => config)
      assert.deepEqual((await readConfig(await placeOf(t, 'a.yaml', text))).config, await written)
    })
  }

  it('of YAML is never parsed as a whole, unless parts of it may need each other', () => {
    for (const [text, isDivided] of [
      [dump(apart), true],
      [dump(apart, { seqNoIndent: true }).replaceAll('\n', '\r\n'), true],
      [dump(noted), false],
      [dump(apart, { flowLevel: 1 }), false],
    ] as const) {
      const sizes: number[] = []
      const value = parseInParts(text, listsInYaml(text), (part) => {
        sizes.push(part.length)
        return load(part)
      })
      assert.deepEqual(value, isDivided ? load(text) : undefined)
      if (isDivided) assert.ok(Math.max(...sizes) < 10_000, `${sizes}`)
    }
  })

  it('of YAML is refused with the line of the fault in the whole file', async (t) => {
    const text = dump(config).replace(`- id: key-${KEYS - 1}\n`, '$&    id: again\n')
    const line = text.slice(0, text.indexOf('id: again')).split('\n').length
    await assert.rejects(readConfig(await placeOf(t, 'a.yaml', text)), (error: Error) => {
      assert.match(error.message, new RegExp(`has a member twice: look at line ${line}, column 5$`))
      return true
    })
  })

  it('whose objects need far more memory than its text is read, too', async (t) => {
    const place = await placeOf(
      t,
      'a.yaml',
      `odd: [${'1,'.repeat(1_000_000)}]\n${dump({ ...config, keys: [] })}`,
    )
    await assert.rejects(readConfig(place), { message: 'odd: is not a known member' })
  })
})

describe('a large config file that is read again', () => {
  const { accounts, keys, ...others } = { ...config, keys: config.keys.slice(0, 200) }
  const [model] = others.models
  const dearer = { ...others, models: [{ ...model, price: { perRequest: '0.002' } }] }

  for (const [name, write] of [
    ['a.json', (value: object) => JSON.stringify(value, null, 1)],
    ['a.yaml', (value: object) => dump(value)],
  ] as const) {
    it(`has its new price, and the accounts and keys that have not changed: ${name}`, async (t) => {
      const place = await placeOf(t, name, write(config))
      const before = await readConfig(place)
      await writeFile(place.configFile, write({ ...config, ...dearer }))
      const after = await readConfig(place, before)
      const { isKnown: _, ...here } = await readHere(place)
      assert.deepEqual(after, here)
      assert.notDeepEqual(after.config.source, before.config.source)
      // They were not read again.
      assert.equal(after.config.keys, before.config.keys)
      assert.equal(after.config.accounts, before.config.accounts)
    })

    const isKnown = async (t: TestContext, first: object, second: object) => {
      const place = await placeOf(t, name, write(first))
      const { listed } = await readHere(place)
      await writeFile(place.configFile, write(second))
      return (await readHere(place, listed)).isKnown
    }

    it(`is read in full if an account or a key has changed, or is gone: ${name}`, async (t) => {
      const first = { ...others, accounts, keys }
      assert.equal(await isKnown(t, first, { ...dearer, accounts, keys }), true)
      for (const changed of [
        { accounts, keys: keys.with(7, { ...keys[7], secret: 'sk-other' } as never) },
        { accounts: accounts.with(7, { id: 'account-7', balance: '11' }), keys },
        { accounts, keys: keys.toReversed() },
        { accounts, keys: keys.slice(1) },
        { accounts },
        { accounts, keys: [] },
        {},
      ])
        assert.equal(await isKnown(t, first, { ...dearer, ...changed }), false)
    })

    it(`is read in full if a secret of a key stands in the environment: ${name}`, async (t) => {
      const ofEnv = [...keys, { id: 'of-env', account: 'account-1', secret: 'env:SECRET' }]
      assert.equal(
        await isKnown(t, { ...others, accounts, keys: ofEnv }, { ...dearer, accounts, keys: ofEnv }),
        false,
      )
    })

    it(`is refused for its faults, as ever: ${name}`, async (t) => {
      await assert.rejects(
        isKnown(t, { ...others, accounts, keys }, { ...dearer, accounts, keys, modles: [] }),
        (error: Error) =>
          error instanceof ConfigError && error.message.startsWith('modles: is not a known member'),
      )
    })
  }

  const one = { id: 'k', account: 'account-1', secret: 'sk-1' }
  /** A shorter text is not read list by list. */
  const filler = `# ${'x'.repeat(5000)}\n`
  for (const [what, first, second] of [
    ['keys in brackets have changed', `keys: [${JSON.stringify(one)}]\n`, 'keys: []\n'],
    ['keys in brackets are gone', `keys: [${JSON.stringify(one)}]\n`, ''],
    ['keys with a quoted name are gone', `"keys":\n  - ${JSON.stringify(one)}\n`, ''],
    ['keys with their dashes alone are gone', `keys:\n  -\n    ${JSON.stringify(one)}\n`, ''],
    ['a member stands behind a line break of a Mac', `keys:\n  - ${JSON.stringify(one)}\rregion: eu\n`],
  ] as const)
    it(`of YAML is read in full if ${what}`, async (t) => {
      const place = await placeOf(t, 'a.yaml', filler + dump({ ...others, accounts }) + first)
      const { listed } = await readHere(place)
      const changed = filler + dump({ ...dearer, accounts }) + (second ?? first)
      await writeFile(place.configFile, changed)
      const { config: read, isKnown } = await readHere(place, listed)
      assert.equal(isKnown, false)
      const { keys: found = [], region } = load(changed) as {
        keys?: unknown[]
        region?: string
      }
      assert.equal([...new ConfigEntries<KeyEntry>(read.keys).read()].flat().length, found.length)
      assert.equal((read.source as { region?: string }).region, region)
    })

  it('of YAML is refused with the line of the fault in the whole file', async (t) => {
    const whole = dump({ ...others, accounts, keys })
    const place = await placeOf(t, 'a.yaml', whole)
    const { listed } = await readHere(place)
    const text = `${whole}region: eu\nregion: us\n`
    await writeFile(place.configFile, text)
    await assert.rejects(readHere(place, listed), {
      message: `--config: ${place.configFile} has a member twice: look at line ${text.split('\n').length - 1}, column 1`,
    })
  })
})
