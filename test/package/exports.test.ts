import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { test } from 'node:test'

const root = new URL('../../', import.meta.url)
const manifest = JSON.parse(readFileSync(new URL('package.json', root), 'utf8')) as { exports: object }
const { './package.json': _, ...subpaths } = manifest.exports as Record<string, unknown>

const source = '@express-model-gateway/source'

test('every folder of lib with a face is a subpath of the package, and nothing else is', () => {
  const faces = globSync('{*/,}index.ts', { cwd: new URL('lib/', root) }).map(dirname)
  const expected = faces.map((folder) => (folder === '.' ? '.' : `./${folder}`))

  assert.deepEqual(Object.keys(subpaths).sort(), expected.sort())
})

test('every subpath offers the source to this repository and the build to everyone else, types first', () => {
  for (const [subpath, entry] of Object.entries(subpaths)) {
    const path = subpath === '.' ? 'index' : `${subpath.slice(2)}/index`
    const expected = {
      types: { [source]: `./lib/${path}.ts`, default: `./dist/${path}.d.ts` },
      [source]: `./lib/${path}.ts`,
      default: `./dist/${path}.js`,
    }
    // Text, not objects: the order of the conditions decides which of them wins.
    assert.equal(JSON.stringify(entry), JSON.stringify(expected), subpath)
  }
})
