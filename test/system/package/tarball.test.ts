import assert from 'node:assert/strict'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { Consumer, specifiers } from './consumer.ts'

describe('the packed tarball, installed in an empty project', () => {
  let consumer: Consumer
  before(() => {
    consumer = new Consumer()
  })
  after(() => consumer?.remove())

  test('holds the build, its sources, README, LICENSE and CHANGELOG, and nothing else', () => {
    const top = globSync('*', { cwd: consumer.installed }).sort()
    assert.deepEqual(top, ['CHANGELOG.md', 'LICENSE', 'README.md', 'dist', 'lib', 'package.json'])
  })

  test('every source map leads to a source that is there', () => {
    const maps = globSync('dist/**/*.map', { cwd: consumer.installed })
    assert.ok(maps.length > 0, 'no source maps in the tarball')
    for (const map of maps) {
      const file = join(consumer.installed, map)
      const { sources } = JSON.parse(readFileSync(file, 'utf8')) as { sources: string[] }
      for (const source of sources) assert.ok(existsSync(join(dirname(file), source)), `${map} → ${source}`)
    }
  })

  test('every subpath can be imported from JavaScript, and exports something', () => {
    consumer.write(
      'main.js',
      `for (const specifier of ${JSON.stringify(specifiers)}) {
        const exported = Object.keys(await import(specifier))
        console.log(JSON.stringify([specifier, exported.length > 0, import.meta.resolve(specifier)]))
      }`,
    )
    const lines = consumer.node(['main.js']).trim().split('\n')
    const imported = lines.map((line) => JSON.parse(line) as [string, boolean, string])

    assert.deepEqual(
      imported.map(([specifier]) => specifier),
      specifiers,
    )
    for (const [specifier, exportsSomething, url] of imported) {
      assert.ok(exportsSomething, `${specifier} exports nothing`)
      assert.match(url, /\/dist\/(.+\/)?index\.js$/, specifier)
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

  test('what is not exported cannot be imported', () => {
    consumer.write('reach.js', `await import('express-model-gateway/dist/index.js')`)
    assert.throws(() => consumer.node(['reach.js']), /ERR_PACKAGE_PATH_NOT_EXPORTED/)
  })
})
