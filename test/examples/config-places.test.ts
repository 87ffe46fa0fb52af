import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { stringify } from 'yaml'
import { printFaults } from '../../examples/gateway/commands/check.ts'
import { temporaryFolder } from '../support/gateway-process.ts'

const SECRET = 'sk-secret-of-the-file'

/** Checks a config file. Returns the exit code and the lines that were printed. */
async function check(t: TestContext, name: string, text: string) {
  const folder = await temporaryFolder()
  t.after(() => folder.remove())
  const file = join(folder.path, name)
  await writeFile(file, text)
  const printed: string[] = []
  for (const method of ['error', 'log'] as const) {
    const mocked = t.mock.method(console, method, (line: string) => void printed.push(line))
    t.after(() => mocked.mock.restore())
  }
  const code = await printFaults({ DATABASE_URL: 'memory:' }, file)
  return { code, printed: printed.map((line) => line.replaceAll(file, 'FILE')) }
}

const line = {
  id: 'l',
  provider: 'p',
  protocol: 'openai',
  baseUrl: 'http://127.0.0.1/v1',
  models: { m: 'u' },
}
const valid = { models: [{ id: 'm', kind: 'chat' }], lines: [line] }

describe('the check of a config file', () => {
  for (const [name, write] of [
    ['a.json', (config: object) => JSON.stringify(config, null, 2)],
    ['a.yaml', (config: object) => stringify(config)],
  ] as const) {
    /** The line and column of a text in the file. */
    const at = (text: string, part: string): string => {
      const lines = text.slice(0, text.indexOf(part)).split('\n')
      return `line ${lines.length}, column ${lines.at(-1)!.length + 1}`
    }

    it(`names the line and the column of each fault, and what was probably meant: ${name}`, async (t) => {
      const text = write({
        modles: [],
        models: [{ id: 'gpt-4.1', kind: 'chat', 'a.b': 1 }],
        lines: [{ ...line, baseUrl: 'nowhere', wieght: 2, models: { 'gpt-4.l': 'u' } }],
        keys: [{ id: 'k', account: 'acme', secret: SECRET }],
        accounts: [{ id: 'acmee' }],
      })
      const { code, printed } = await check(t, name, text)
      const quote = name === 'a.json' ? '"' : ''
      const place = (member: string) => `(${at(text, `${quote}${member}${quote}:`)})`
      assert.equal(code, 1)
      assert.deepEqual(printed.sort(), [
        `keys[0].account: there is no account "acme"; did you mean "acmee"? ${place('account')}`,
        `lines[0].baseUrl: must be an http(s) URL ${place('baseUrl')}`,
        `lines[0].models.gpt-4.l: there is no model "gpt-4.l"; did you mean "gpt-4.1"? ${place('gpt-4.l')}`,
        `lines[0].wieght: is not a known member; did you mean "weight"? ${place('wieght')}`,
        `models[0].a.b: is not a known member ${place('a.b')}`,
        `modles: is not a known member; did you mean "models"? ${place('modles')}`,
      ])
    })

    it(`names the object that lacks a member: ${name}`, async (t) => {
      const text = write({ ...valid, keys: [{ id: 'first' }] })
      const { printed } = await check(t, name, text)
      const place = name === 'a.json' ? at(text, '{\n      "id": "first"') : at(text, 'id: first')
      assert.equal(printed.length, 2)
      for (const fault of printed)
        assert.match(fault, new RegExp(`^keys\\[0\\]\\.\\w+: is missing.* \\(${place}\\)$`))
    })
  }

  for (const [name, text] of [
    ['a.json', `{\n  "keys": [{ "id": "k", "secret": "${SECRET}",\n    "id": "other" }]\n}`],
    ['a.yaml', `keys:\n  - { id: k, secret: ${SECRET},\n    id: other }\n`],
  ] as const)
    it(`a member that is there twice is a fault: ${name}`, async (t) => {
      const { code, printed } = await check(t, name, text)
      assert.equal(code, 1)
      assert.deepEqual(printed, ['--config: FILE has a member twice: look at line 3, column 5'])
    })

  it('members of the same name in different objects are no fault', async (t) => {
    const { code, printed } = await check(t, 'a.json', JSON.stringify(valid))
    assert.deepEqual([code, printed], [0, ['FILE is valid']])
  })

  for (const text of ['{"a": 1 /* b */}', '{"a": 1,}', '{"a": 1} x', "{'a': 1}", '', '{"a": "\u0001"}'])
    it(`${JSON.stringify(text)} is not JSON`, async (t) => {
      const { code, printed } = await check(t, 'a.json', text)
      assert.equal(code, 1)
      assert.match(printed.join('\n'), /^--config: FILE is not valid JSON(: look at line 1, column \d+)?$/)
    })

  for (const text of [
    `keys:\n  - { id: k, secret: ${SECRET}\n    id: other }\n`,
    `keys:\n  - "${SECRET}\n`,
    '\tkeys: []\n',
  ])
    it(`${JSON.stringify(text)} is not YAML, and is not quoted`, async (t) => {
      const { code, printed } = await check(t, 'a.yaml', text)
      assert.equal(code, 1)
      assert.match(printed.join('\n'), /^--config: FILE is not valid YAML: look at line \d, column \d+$/)
    })

  it('a chat model of an Anthropic line without a maximum of output is a hint, and valid', async (t) => {
    const models = [...valid.models, { id: 'bounded', kind: 'chat', maxOutputTokens: 64_000 }]
    const lines = [line, { ...line, id: 'a', protocol: 'anthropic', models: { m: 'u', bounded: 'v' } }]
    const { code, printed } = await check(t, 'a.json', JSON.stringify({ models, lines }))
    assert.equal(code, 0)
    assert.equal(printed.length, 2)
    assert.match(printed[0]!, /^hint: models: "m" has no "maxOutputTokens".* 4096 tokens$/)
    assert.equal(printed[1], 'FILE is valid')
  })
})
