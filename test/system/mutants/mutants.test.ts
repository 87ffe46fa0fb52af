import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { Trial } from '../../mutants/trial.ts'

const TOOL = fileURLToPath(new URL('../../mutants/run.ts', import.meta.url))
const FIXTURE = fileURLToPath(new URL('../../mutants/fixture', import.meta.url))

let folder: string
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'mutants-fixture-'))
  await cp(FIXTURE, folder, { recursive: true })
})
after(() => rm(folder, { recursive: true, force: true }))

/** Runs the tool in the fixture; answers what it prints. */
async function mutants(...args: string[]): Promise<string> {
  const { NODE_OPTIONS: _, NODE_TEST_CONTEXT: __, ...env } = process.env
  return (await promisify(execFile)(process.execPath, [TOOL, ...args], { cwd: folder, env })).stdout
}

/** Tries what the arguments name, with all tests of the fixture or those named; answers what became of each mutant. */
async function trials(...args: string[]) {
  const json = join(folder, 'trials.json')
  const tests = args.includes('--tests') ? [] : ['--tests', 'checks/*.check.ts']
  const said = await mutants(...args, ...tests, '--accepted', 'accepted.json', '--json', json)
  const list: Trial[] = JSON.parse(await readFile(json, 'utf8'))
  const outcomeOf = (to: string) => list.find(({ mutant }) => mutant.to === to)?.outcome
  return { said, list, outcomeOf }
}

describe('a run over mutants', () => {
  test('tells the mutants that a test notices from those that none does', async () => {
    const { said, list, outcomeOf } = await trials('shop/price.ts')
    assert.equal(outcomeOf('return basket - sending'), 'killed')
    assert.equal(outcomeOf('if (false) return basket'), 'killed')
    assert.equal(outcomeOf('if (basket > FREE_FROM) return basket'), 'survived')
    assert.equal(outcomeOf('const FREE_FROM = 49'), 'survived')
    assert.match(
      said,
      /- if \(basket >= FREE_FROM\) return basket\n {2}\+ if \(basket > FREE_FROM\) return basket/,
    )
    assert.equal(
      list.filter(({ outcome }) => outcome === 'killed').every(({ by }) => by),
      true,
    )
  })

  test('leaves out tests that fail without a mutant', async () => {
    const { said, outcomeOf } = await trials('shop/price.ts')
    assert.equal(outcomeOf('return basket >= 0'), 'survived')
    assert.match(said, /broken.check.ts fails without a mutant, and is not heard: always fails/)
    assert.doesNotMatch(said, /measured checks\/price/, 'what has not changed is not measured again')
  })

  test('counts accepted survivors apart, and names those that are no longer there', async () => {
    const { said } = await trials('shop/price.ts')
    assert.doesNotMatch(said, /\+ const FREE_FROM = 51/)
    assert.match(said, /; 1 of these accepted/)
    assert.match(said, /accepted, but no longer there: shop\/price.ts: return basket \* sending/)
  })

  test('reaches processes that a test starts', async () => {
    const { list } = await trials('shop/server.ts', 'shop/price.ts', '--tests', 'checks/server.check.ts')
    const { outcomeOf } = { outcomeOf: (to: string) => list.find(({ mutant }) => mutant.to === to) }
    assert.equal(outcomeOf('return basket - sending')?.outcome, 'killed')
    assert.equal(outcomeOf('return basket - sending')?.by, 'the server says the price')
    assert.equal(list.find(({ mutant }) => mutant.file === 'shop/server.ts')?.outcome, 'killed')
  })

  test('ends a mutant that never ends', async () => {
    const { outcomeOf } = await trials('shop/count.ts')
    assert.equal(outcomeOf('while (count < last) count--'), 'timeout')
    assert.equal(outcomeOf('while (count <= last) count++'), 'killed')
  })

  test('draws the same for the same seed, of every file', async () => {
    const drawn = (seed: string) => mutants('shop', '--sample', '6', '--seed', seed, '--list')
    const first = await drawn('3')
    assert.equal(await drawn('3'), first)
    assert.notEqual(await drawn('4'), first)
    for (const file of ['count', 'price', 'server']) assert.match(first, new RegExp(`shop/${file}\\.ts:`))
  })

  test('takes the lines that have changed', async () => {
    const git = (...args: string[]) => promisify(execFile)('git', args, { cwd: folder })
    await git('init', '--quiet')
    await git('add', '.')
    await git('-c', 'user.name=t', '-c', 'user.email=t@example.org', 'commit', '--quiet', '--message=first')
    const path = join(folder, 'shop', 'price.ts')
    await writeFile(path, (await readFile(path, 'utf8')).replace('basket > 0', 'basket > 1'))
    const lines = new Set((await mutants('shop', '--since', 'HEAD', '--list')).match(/^shop\S+/gm))
    assert.deepEqual([...lines], ['shop/price.ts:11'])
  })

  test('says what it does not understand', async () => {
    await assert.rejects(mutants(), /Name a folder or a file\./)
    await assert.rejects(mutants('shop', '--sample', 'none'), /--sample must be a number/)
  })
})
