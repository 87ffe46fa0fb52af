import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { globSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../../', import.meta.url))
const tsc = join(root, 'node_modules', 'typescript', 'bin', 'tsc')
/** Beyond this it would no longer be a small thing to load. */
const MAX_BYTES = 32 * 1024

describe('the built client', () => {
  let folder = ''
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'client-'))
    // As a page would compile it: what a browser has, and nothing of Node.
    const build = spawnSync(
      process.execPath,
      [
        ...[tsc, join(root, 'lib', 'client', 'index.ts'), '--ignoreConfig', '--outDir', folder],
        ...['--rootDir', join(root, 'lib', 'client'), '--lib', 'es2024,dom,dom.iterable', '--types', ''],
        ...['--target', 'es2024', '--module', 'esnext', '--moduleResolution', 'bundler', '--declaration'],
        ...['--strict', '--exactOptionalPropertyTypes', '--noUncheckedIndexedAccess'],
        ...['--verbatimModuleSyntax', '--rewriteRelativeImportExtensions', '--pretty', 'false'],
      ],
      { cwd: folder, encoding: 'utf8' },
    )
    assert.equal(build.stdout + build.stderr, '', 'type-checks with lib.dom and without Node')
  })
  after(() => rmSync(folder, { recursive: true, force: true }))

  it('imports its own files only', () => {
    const files = globSync('**/*.{js,d.ts}', { cwd: folder })
    assert.ok(files.includes('with-retries.js'))
    for (const file of files) {
      const text = readFileSync(join(folder, file), 'utf8')
      const imported = [...text.matchAll(/\b(?:from|import)\s*\(?\s*['"]([^'"]+)['"]/g)].map(
        ([, from]) => from,
      )
      for (const from of imported) assert.match(String(from), /^\.\/[\w-]+\.[jt]s$/, file)
      assert.doesNotMatch(text, /\b(?:require|process|Buffer|__dirname|global)\b\s*[.(]/, file)
    }
  })

  it('is small', () => {
    const bytes = globSync('**/*.js', { cwd: folder }).map((file) => statSync(join(folder, file)).size)
    const sum = bytes.reduce((all, each) => all + each, 0)
    assert.ok(sum < MAX_BYTES, `${sum} bytes`)
  })

  it('is imported without loading any of Node’s own modules', () => {
    const program = `
      import { registerHooks } from 'node:module'
      const asked = []
      registerHooks({ resolve: (from, context, next) => (asked.push(from), next(from, context)) })
      const { withRetries } = await import(${JSON.stringify(join(folder, 'index.js'))})
      console.log(JSON.stringify([typeof withRetries, asked.filter((from) => from.startsWith('node:'))]))`
    const said = execFileSync(process.execPath, ['--input-type=module', '--eval', program], {
      encoding: 'utf8',
    })
    assert.deepEqual(JSON.parse(said), ['function', []])
  })
})
