import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { ROOT } from './pages.ts'

const manifest = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
  exports: Readonly<Record<string, Readonly<Record<string, unknown>>>>
}

/** The public subpaths with their sources. The command exports nothing. */
const subpaths = Object.entries(manifest.exports).flatMap(([subpath, entry]) => {
  const source = entry['@express-model-gateway/source']
  return typeof source === 'string' && !subpath.endsWith('/bin') ? [[subpath, source] as const] : []
})

/** The text of the pages that document a subpath: those of its folder, or the README and the guides. */
function documentationOf(source: string): string {
  const folder = /^\.\/(lib\/.+)\/\w+\.ts$/.exec(source)?.[1]
  const patterns = folder === undefined ? ['README.md', 'docs/*.md', 'lib/**/*.md'] : [`${folder}/*.md`]
  const pages = globSync(patterns, { cwd: ROOT })
  return pages.map((page) => readFileSync(join(ROOT, page), 'utf8')).join('\n')
}

describe('the names that the package exports', () => {
  for (const [subpath, source] of subpaths)
    it(`${subpath}: each stands in its page`, async () => {
      const names = Object.keys((await import(join(ROOT, source))) as object)
      const text = documentationOf(source)
      const missing = names.filter((name) => !new RegExp(`\\b${name}\\b`).test(text))
      assert.ok(names.length > 0)
      assert.deepEqual(missing, [])
    })

  it('are few at the root', async () => {
    const names = Object.keys((await import(join(ROOT, 'lib/index.ts'))) as object)
    assert.ok(names.length <= 35, `${names.length}`)
  })
})
