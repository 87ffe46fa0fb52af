import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { ROOT, SLICES } from './pages.ts'

/** What slices hand to one another, and no user writes. */
const WITHIN = ['HeldEndOptions', 'StreamReaderOptions', 'RecordKeeperOptions']

interface Options {
  readonly name: string
  readonly members: readonly string[]
}

const sources = globSync('lib/**/*.ts', { cwd: ROOT }).map((file) => readFileSync(join(ROOT, file), 'utf8'))

/** The option types that users can name through a slice's face, with their own members. */
function optionsOf(slice: string): Options[] {
  const face = readFileSync(join(ROOT, slice, 'index.ts'), 'utf8')
  const declared = sources.flatMap((source) => [
    ...source.matchAll(/^export interface (\w+(?:Options|Level))\b[^{]*\{\n(.*?)^\}/gms),
  ])
  return declared
    .map(([, name = '', body = '']) => ({ name, members: wordsOf(body, /^ {2}(\w+)\??:/gm) }))
    .filter(({ name }) => new RegExp(`\\b${name}\\b`).test(face) && !WITHIN.includes(name))
}

function wordsOf(text: string, pattern: RegExp): string[] {
  return [...text.matchAll(pattern)].map(([, word = '']) => word)
}

/** What the first cells of the tables on a slice's pages name, such as `store` and, of `states.lines`, `states`. */
function namedOn(slice: string): ReadonlySet<string> {
  const pages = globSync(`${slice}/*.md`, { cwd: ROOT }).map((page) => readFileSync(join(ROOT, page), 'utf8'))
  const cells = pages.flatMap((page) => wordsOf(page, /^\| (.*?) \|/gm))
  return new Set(cells.flatMap((cell) => wordsOf(cell, /`(\w+)[^`]*`/g)))
}

const slices = [...SLICES.values()]

describe('the pages of the slices name every option', () => {
  it('are found', () => assert.ok(slices.flatMap(optionsOf).length > 30))

  for (const slice of slices.sort()) {
    const named = namedOn(slice)
    for (const { name, members } of optionsOf(slice)) {
      it(`${slice}: ${name}`, () => {
        assert.ok(members.length > 0)
        assert.deepEqual(
          members.filter((member) => !named.has(member)),
          [],
        )
      })
    }
  }
})
