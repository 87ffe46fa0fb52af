import assert from 'node:assert/strict'
import { existsSync, globSync, readFileSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { Consumer, specifiers } from './consumer.ts'

describe('the packed tarball, installed in an empty project', () => {
  let consumer: Consumer
  before(() => {
    // ioredis: only who imports ./redis needs it, and this project imports everything. pg: only who opens a Postgres.
    consumer = new Consumer(['toolkit'], ['express', 'ioredis', '@types/express', '@types/node'])
  })
  after(() => consumer?.remove())

  test('holds the build, its sources, the documentation, LICENSE and CHANGELOG, and nothing else', () => {
    const top = globSync('*', { cwd: consumer.installed }).sort()
    const documents = ['CHANGELOG.md', 'LICENSE', 'README.md', 'docs', 'llms.txt']
    assert.deepEqual(top, [...documents, 'dist', 'lib', 'package.json'].sort())
  })

  test('takes less than 8 MB unpacked', () => {
    const files = globSync('**/*', { cwd: consumer.installed, withFileTypes: true }).filter((each) =>
      each.isFile(),
    )
    const bytes = files.map((file) => statSync(join(file.parentPath, file.name)).size)
    const unpacked = bytes.reduce((sum, size) => sum + size, 0)
    assert.ok(unpacked > 1_000_000 && unpacked < 8_000_000, `${unpacked} bytes`)
  })

  test('every link of its pages leads to what it holds, or to an address', () => {
    const pages = globSync(['**/*.md', 'llms.txt'], { cwd: consumer.installed })
    assert.ok(pages.length > 30, `${pages.length} pages`)
    const broken = pages.flatMap((page) =>
      linksOf(page)
        .filter((target) => !existsSync(join(consumer.installed, dirname(page), target)))
        .map((target) => `${page}: ${target}`),
    )
    assert.deepEqual(broken, [])
  })

  test('llms.txt leads to every page that it holds', () => {
    const pages = globSync(['docs/*.md', 'lib/**/*.md'], { cwd: consumer.installed })
    assert.deepEqual(linksOf('llms.txt').sort(), pages.sort())
  })

  /** The files that a page links to, without links in its code. */
  function linksOf(page: string): string[] {
    const text = readFileSync(join(consumer.installed, page), 'utf8').replace(/^```.*?^```$/gms, '')
    const targets = [...text.matchAll(/\]\(([^)\s#]+)(#[^)\s]*)?\)/g)].map(([, target = '']) => target)
    return targets.filter((target) => !/^https?:/.test(target))
  }

  test('every source map leads to a source that is there', () => {
    const maps = globSync('dist/**/*.map', { cwd: consumer.installed })
    assert.ok(maps.length > 0, 'no source maps in the tarball')
    for (const map of maps) {
      const file = join(consumer.installed, map)
      const { sources } = JSON.parse(readFileSync(file, 'utf8')) as { sources: string[] }
      for (const source of sources) assert.ok(existsSync(join(dirname(file), source)), `${map} → ${source}`)
    }
  })

  test('every subpath can be imported from JavaScript alone, and exports something', (t) => {
    consumer.write(
      'main.js',
      `const specifier = process.argv[2]
      const before = process.cpuUsage()
      const exported = Object.keys(await import(specifier))
      const { user, system } = process.cpuUsage(before)
      const cpuMs = Math.round((user + system) / 1000)
      console.log(JSON.stringify({ exported: exported.length, url: import.meta.resolve(specifier), cpuMs }))`,
    )
    for (const specifier of specifiers) {
      const { exported, url, cpuMs } = JSON.parse(consumer.node(['main.js', specifier]))
      t.diagnostic(`import '${specifier}': ${cpuMs} ms of CPU time`)
      assert.ok(exported > 0, `${specifier} exports nothing`)
      assert.match(url, /\/dist\/(.+\/)?(index|public)\.js$/, specifier)
    }
  })

  test('every subpath has declarations that pass the strictest type check', () => {
    const imports = specifiers.map((specifier, i) => `import * as slice${i} from '${specifier}'`)
    const uses = specifiers.map((_, i) => `slice${i} satisfies object`)
    consumer.write('main.ts', [...imports, ...uses].join('\n'))

    consumer.typecheck(
      '--strict',
      '--exactOptionalPropertyTypes',
      '--noUncheckedIndexedAccess',
      ...['--skipLibCheck', 'false', '--module', 'nodenext', '--target', 'es2024', '--types', 'node'],
      'main.ts',
    )
  })

  test('without pg, SQLite works and a postgres:// database says in one line what to install', () => {
    assert.ok(!existsSync(join(consumer.folder, 'node_modules', 'pg')))
    consumer.write(
      'databases.js',
      `import { openDatabase } from 'express-model-gateway/sql'
      await (await openDatabase('sqlite:gateway.db')).destroy()
      await openDatabase('postgres://127.0.0.1/gateway').catch(({ message }) => console.log(message))`,
    )
    assert.equal(
      consumer.node(['databases.js']),
      'a postgres:// database needs the package pg: npm install pg\n',
    )
  })

  test('a module that is not exported cannot be imported', () => {
    consumer.write('reach.js', `await import('express-model-gateway/dist/index.js')`)
    assert.throws(() => consumer.node(['reach.js']), /ERR_PACKAGE_PATH_NOT_EXPORTED/)
  })
})
