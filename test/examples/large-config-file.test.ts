import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { ConfigEntries, ConfigError } from 'express-model-gateway/config'
import { dump, load } from 'js-yaml'
import { readConfig, readHere } from '../../examples/gateway/config/read-config.ts'
import { parseInParts } from '../../examples/gateway/config/yaml-parts.ts'
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

  const limits = { rpm: 60, tpm: 20_000 }
  const note = 'a text\n- id: none\n  - id: of a list\n\nkeys:\n  - none'
  const noted = { ...config, keys: config.keys.slice(0, 1500).map((key) => ({ ...key, note, limits })) }
  const apart = { ...noted, keys: noted.keys.map((key) => ({ ...key, limits: { ...limits } })) }
  let written: ReturnType<typeof readHere> | undefined
  for (const [how, text] of [
    ['with indented lists', dump(apart)],
    ['with lists that are not indented', dump(apart, { seqNoIndent: true })],
    ['with the line breaks of Windows', dump(apart).replaceAll('\n', '\r\n')],
    ['with comments', dump(apart).replaceAll(/^ {2}- /gm, '# comment\n\n  # - comment\n$&')],
    ['with lists in brackets', dump(apart, { flowLevel: 1 })],
    ['with anchors', dump(noted)],
  ] as const) {
    it(`of YAML has the content that was written, ${how}`, async (t) => {
      written ??= readHere(await placeOf(t, 'a.json', JSON.stringify(noted)))
      assert.deepEqual(await readConfig(await placeOf(t, 'a.yaml', text)), await written)
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
      const value = parseInParts(text, (part) => {
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
