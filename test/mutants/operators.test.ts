import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { findMutants } from './find-mutants.ts'

const folder = mkdtempSync(join(tmpdir(), 'mutants-'))
after(() => rmSync(folder, { recursive: true }))

let files = 0

/** What becomes of a piece of code. */
function mutantsOf(code: string): string[] {
  const file = join(folder, `${++files}.ts`)
  writeFileSync(file, code)
  return findMutants(file).map(({ to }) => to)
}

const CASES: readonly (readonly [code: string, mutants: readonly string[]])[] = [
  ['if (a) b', ['if (true) b', 'if (false) b', 'if (a) ;']],
  ['x = a && b', [';', 'x = a', 'x = b']],
  ['x = a ?? b', [';', 'x = a', 'x = b']],
  ['const x = c ? a : b', ['const x = a', 'const x = b']],
  ['const x = a < 5', ['const x = a <= 5', 'const x = a < 6', 'const x = a < 4']],
  ['const x = a === b', ['const x = a !== b']],
  ['if (a === b) {}', ['if (true) {}', 'if (false) {}']],
  ['const LIMIT = 500', ['const LIMIT = 1000']],
  ['const x = 0n', ['const x = 1n']],
  ["const x = 'word'", ["const x = ''"]],
  ["throw new Error('word')", [';']],
  ["log.warn({ a }, 'word')", [';']],
  ["const x = 'words for people'", []],
  ["const x = { 'key': a }", []],
  ["import { a } from './a.ts'", []],
  ["export { a } from './a.ts'", []],
  ["type Kind = 'one' | 'two'", []],
  ["const x = a as 'one'", []],
  ['const x = a?.b', ['const x = a.b']],
  ['const x = a?.[0]', ['const x = a[0]', 'const x = a?.[1]']],
  ['const x = a.filter(b)', ['const x = a']],
  ['const x = a.some(b)', ['const x = a.every(b)']],
  ['const x = a.toString()', []],
  ['const x = Math.min(a, b)', ['const x = Math.max(a, b)']],
  ['const x = performance.now()', ['const x = Date.now()']],
  ['const x = /^a\\$/i', ['const x = /a\\$/i', 'const x = /^a\\$/']],
  ['const x = [a, b]', ['const x = [b, a]', 'const x = [a]']],
  ['await a()', ['await undefined']],
  [
    'for (const a of b) { c(); continue }',
    ['for (const a of b) {}', 'for (const a of b) { ; continue }', 'for (const a of b) { c(); ; }'],
  ],
  ['const f = () => a()', ['const f = () => undefined']],
  ['const f = () => undefined', []],
  ['function f() { return undefined }', []],
  ['function f() { return a() }', ['function f() { return }']],
  [
    "const x = 'select a where b >= 1 and c'",
    ["const x = 'select a where b >= 1 or c'", "const x = 'select a where b > 1 and c'"],
  ],
  ['const x = `\n  -- a and b\nredis.call(a, b - 1)`', ['redis.call(a, b + 1)`']],
]

describe('the mutants of', () => {
  for (const [code, expected] of CASES) {
    test(code, () => assert.deepEqual(mutantsOf(code).sort(), [...expected].sort()))
  }

  test('a line name the functions and classes around it', () => {
    const file = join(folder, 'class.ts')
    writeFileSync(file, 'class A {\n  #b() {\n    const f = () => { return a() }\n  }\n}\n')
    const [mutant] = findMutants(file)
    assert.equal(mutant?.within, 'A.#b.f')
    assert.equal(mutant?.line, 3)
  })
})
