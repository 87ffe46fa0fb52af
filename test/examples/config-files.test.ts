import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { it, type TestContext } from 'node:test'
import { readConfigFile } from '../../examples/gateway/config/config-file.ts'
import { temporaryFolder } from '../support/gateway-process.ts'

async function read(t: TestContext, name: string, text: string): Promise<object> {
  const folder = await temporaryFolder()
  t.after(() => folder.remove())
  const file = join(folder.path, name)
  await writeFile(file, text)
  return (await readConfigFile(file, '--config')).value
}

for (const [name, text] of Object.entries({ 'a.json': '{"a":1}', 'a.yaml': 'a: 1\n' }))
  it(`${name} may begin with the byte order mark that editors on Windows write`, async (t) => {
    assert.deepEqual(await read(t, name, `\uFEFF${text}`), { a: 1 })
  })

it('a merge of YAML adds the members of another mapping, and sends no member "<<" to an upstream', async (t) => {
  const text = 'lines:\n  - body: &b { top_k: 1, n: 1 }\n  - body: { <<: *b, n: 2 }\n'
  assert.deepEqual(await read(t, 'a.yaml', text), {
    lines: [{ body: { top_k: 1, n: 1 } }, { body: { top_k: 1, n: 2 } }],
  })
})

it('a merge of several mappings takes a member of the first that has it', async (t) => {
  const text = 'a: &a { x: 1 }\nb: &b { x: 2, y: 2 }\nc: { <<: [*a, *b] }\n'
  assert.deepEqual(await read(t, 'a.yaml', text), { a: { x: 1 }, b: { x: 2, y: 2 }, c: { x: 1, y: 2 } })
})
