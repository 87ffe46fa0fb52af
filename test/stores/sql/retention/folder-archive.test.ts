import assert from 'node:assert/strict'
import { mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { it, type TestContext } from 'node:test'
import { FolderArchive } from '../../../../lib/stores/sql/index.ts'
import { temporaryFolder } from '../../../support/gateway-process.ts'

const NAME = 'calls/2030/01/calls-2030-01-02.jsonl.gz'
const FOLDER = 'calls/2030/01'

async function opened(t: TestContext) {
  const folder = await temporaryFolder()
  t.after(() => folder.remove())
  const path = join(folder.path, 'archive')
  const files = async () => {
    const all = await readdir(path, { recursive: true, withFileTypes: true })
    return all.flatMap((entry) => (entry.isFile() ? [entry.name] : [])).sort()
  }
  return { path, files, archive: new FolderArchive(path) }
}

async function* chunks(...texts: readonly (string | Error)[]) {
  for (const text of texts) {
    if (text instanceof Error) throw text
    yield Buffer.from(text)
  }
}

it('a file of an archive gets its name once it is whole and confirmed, and no other user may read it', async (t) => {
  const { path, files, archive } = await opened(t)
  let confirmed = 0
  await archive.write(NAME, chunks('one', 'two', 'three'), async () => {
    confirmed++
    const [part, ...others] = await files()
    assert.deepEqual(others, [])
    assert.match(String(part), /^\.calls-2030-01-02\.jsonl\.gz\..+\.part$/)
    assert.equal((await readFile(join(path, FOLDER, String(part)))).toString(), 'onetwothree')
  })
  assert.equal(confirmed, 1)
  assert.deepEqual(await files(), ['calls-2030-01-02.jsonl.gz'])
  assert.equal((await readFile(join(path, NAME))).toString(), 'onetwothree')
  assert.equal((await stat(join(path, NAME))).mode & 0o777, 0o600)
  for (const made of ['', 'calls', 'calls/2030', FOLDER])
    assert.equal((await stat(join(path, made))).mode & 0o777, 0o700, made)
})

it('a file of an archive is replaced as a whole', async (t) => {
  const { path, files, archive } = await opened(t)
  await archive.write(NAME, chunks('before', 'and more'), async () => {})
  await archive.write(NAME, chunks('after'), async () => {})
  assert.equal((await readFile(join(path, NAME))).toString(), 'after')
  assert.deepEqual(await files(), ['calls-2030-01-02.jsonl.gz'])
})

for (const [what, texts, refused] of [
  ['cannot be read to its end', ['one', new Error('read'), 'two'], undefined],
  ['cannot be read at all', [new Error('read')], undefined],
  ['is not confirmed', ['one', 'two'], new Error('confirm')],
] as const)
  it(`a new file that ${what} leaves the file of before, and nothing beside it`, async (t) => {
    const { path, files, archive } = await opened(t)
    const write = () =>
      archive.write(NAME, chunks(...texts), async () => {
        if (refused) throw refused
      })
    await assert.rejects(write(), { message: refused ? 'confirm' : 'read' })
    assert.deepEqual(await files(), [])
    await archive.write(NAME, chunks('before'), async () => {})
    await assert.rejects(write(), { message: refused ? 'confirm' : 'read' })
    assert.deepEqual(await files(), ['calls-2030-01-02.jsonl.gz'])
    assert.equal((await readFile(join(path, NAME))).toString(), 'before')
  })

it('a partial file of a process that was killed is removed with the next try, and nothing else', async (t) => {
  const { path, files, archive } = await opened(t)
  await mkdir(join(path, FOLDER), { recursive: true })
  const own = '.calls-2030-01-02.jsonl.gz.1234.part'
  const others = [
    '.calls-2030-01-02.jsonl.gz.1234',
    '.calls-2030-01-03.jsonl.gz.1234.part',
    'calls-2030-01-02.jsonl.gz.1234.part',
    'calls-2030-01-01.jsonl.gz',
  ]
  for (const name of [own, ...others]) await writeFile(join(path, FOLDER, name), 'x')
  await archive.write(NAME, chunks('own'), async () => {})
  assert.deepEqual(await files(), [...others, 'calls-2030-01-02.jsonl.gz'].sort())
})
