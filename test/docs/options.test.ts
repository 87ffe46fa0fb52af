import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { ROOT, SLICES } from './pages.ts'

/** Options that slices hand to one another, and that no user writes. */
const WITHIN = ['HeldEndOptions', 'StreamReaderOptions', 'RetryingWriterOptions']

interface Options {
  readonly name: string
  readonly body: string
}

const sources = globSync('lib/**/*.ts', { cwd: ROOT }).map((file) => readFileSync(join(ROOT, file), 'utf8'))

/** The option types that users can name through a slice's face, with their own members. */
function optionsOf(slice: string): Options[] {
  const face = readFileSync(join(ROOT, slice, 'index.ts'), 'utf8')
  const declared = sources.flatMap((source) => [
    ...source.matchAll(/^export interface (\w+(?:Options|Level))\b[^{]*\{\n(.*?)^\}/gms),
  ])
  return declared
    .map(([, name = '', body = '']) => ({ name, body }))
    .filter(({ name }) => new RegExp(`\\b${name}\\b`).test(face) && !WITHIN.includes(name))
}

/** The facts that the reference would lack about the members: what one does, and what holds without it. */
function unsaid(body: string): string[] {
  const members = body.matchAll(/(\/\*\*(?:(?!\*\/).)*\*\/\s*)?^ {2}(?:readonly )?(\w+)(\??):/gms)
  return [...members].flatMap(([, comment = '', member = '', optional]) => {
    if (comment === '') return [`${member} has no doc comment`]
    const words = comment.replaceAll(/\s+(?:\* )?/g, ' ')
    return optional && !/\b(?:[Dd]efaults? to|[Ww]ithout)\b/.test(words) ? [`${member} says no default`] : []
  })
}

const slices = [...SLICES.values()]

describe('the reference says of every option what it does and its default', () => {
  it('are found', () => assert.ok(slices.flatMap(optionsOf).length > 30))

  for (const slice of slices.sort()) {
    for (const { name, body } of optionsOf(slice)) {
      it(`${slice}: ${name}`, () => {
        assert.match(body, /^ {2}(?:readonly )?\w+\??:/m)
        assert.deepEqual(unsaid(body), [])
      })
    }
  }
})
