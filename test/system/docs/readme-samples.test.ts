import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import * as face from '../../../lib/index.ts'
import { blocksOf, ROOT, SLICES } from '../../docs/pages.ts'
import { SURROUNDING_NAMES, SURROUNDINGS } from './sample-surroundings.ts'

/** A `ts` block of a README, or of a page beside one. */
interface Sample {
  readonly readme: string
  /** Line of the README on which the code begins, from 1. */
  readonly line: number
  readonly code: string
}

const samples: readonly Sample[] = blocksOf(['README.md', 'docs/*.md', 'lib/**/*.md', 'examples/**/*.md'])
  .filter(({ language }) => language === 'ts')
  .map(({ page, line, code }) => ({ readme: page, line, code }))

/**
 * A sample that listens is a whole program and stands for itself. Any other is a part of one: it takes the names around
 * it as given, what the package and the README's own slice export among them.
 */
async function preludeOf({ readme, code }: Sample): Promise<string> {
  if (code.includes('.listen(')) return 'export {}'
  const [slice] = [...SLICES].find(([, folder]) => readme.startsWith(`${folder}/`)) ?? []
  const own = slice === undefined ? {} : ((await import(`express-model-gateway/${slice}`)) as object)
  const ownNames = Object.keys(own).filter((name) => !Object.hasOwn(face, name))
  const imports: [string, readonly string[]][] = [
    ['./surroundings.ts', SURROUNDING_NAMES],
    ['express-model-gateway', Object.keys(face)],
    [`express-model-gateway/${slice}`, ownNames],
  ]
  return imports
    .map(([from, names]) => [from, names.filter((name) => !declares(code, name))] as const)
    .map(([from, names]) =>
      names.length > 0 ? `import { ${names.join(', ')} } from '${from}'` : 'export {}',
    )
    .join('; ')
}

function declares(code: string, name: string): boolean {
  return new RegExp(`^(?:import|export|const|let|class|function|declare)\\b[^=('";]*\\b${name}\\b`, 'm').test(
    code,
  )
}

/** Returns the faults that the compiler reports for a sample, each with its line in the README. */
function faultsOf(output: string, file: string, { readme, line }: Sample): string[] {
  return output.split('\n').flatMap((fault) => {
    const match = /^(.+?)\((\d+),\d+\): (error .*)$/.exec(fault)
    if (!match || basename(match[1] as string) !== file) return []
    // The prelude is the first line of the file.
    return [`${readme}:${line + Number(match[2]) - 2}: ${match[3]}`]
  })
}

describe('code samples of the docs', () => {
  const ignored = join(ROOT, '.data')
  let folder = ''
  let output = ''
  before(async () => {
    mkdirSync(ignored, { recursive: true })
    // In the repository, so that the package finds itself by its own name.
    folder = mkdtempSync(join(ignored, 'readme-samples-'))
    const write = (file: string, text: string) => writeFileSync(join(folder, file), text)
    for (const [i, sample] of samples.entries())
      write(`sample-${i}.ts`, `${await preludeOf(sample)}\n${sample.code}`)
    write('surroundings.ts', SURROUNDINGS)
    write('tsconfig.json', JSON.stringify({ extends: '../../tsconfig.json', include: ['*.ts'] }))
    const tsc = join(ROOT, 'node_modules', 'typescript', 'bin', 'tsc')
    const run = spawnSync(process.execPath, [tsc, '--project', folder, '--pretty', 'false'], {
      cwd: ROOT,
      encoding: 'utf8',
    })
    assert.ok(run.status !== null, 'the compiler did not run to its end')
    output = run.stdout + run.stderr
  })
  after(() => rmSync(folder, { recursive: true, force: true }))

  it('are found in every slice', () => {
    const folders = [...SLICES.values()]
    const without = folders.filter(
      (folder) => !samples.some(({ readme }) => readme === `${folder}/README.md`),
    )
    assert.deepEqual(without, [])
  })

  for (const [i, sample] of samples.entries()) {
    it(`${sample.readme}:${sample.line} type-checks`, () => {
      assert.deepEqual(faultsOf(output, `sample-${i}.ts`, sample), [])
    })
  }

  it('are all that the compiler can have faults in here', () => {
    // The faults of the library are the business of `npm run typecheck`.
    const others = output.replaceAll(/^(?:lib\/|.*sample-\d+\.ts\().*\n(?: .*\n)*/gm, '')
    assert.equal(others, '')
  })
})
