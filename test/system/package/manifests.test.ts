import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { FOLDERS, manifestOf, ROOT } from './packages.ts'

const toolkit = manifestOf('toolkit')
const server = manifestOf('server')
const { 'express-model-gateway': brought, ...others } = server.dependencies

/** The packages that only this repository needs: browsers of a clone get the console without its types. */
const ONLY_HERE = ['amaro']

/** The packages that the assembled gateway and the stores import and the toolkit does not bring. */
const LOADED_WHEN_NEEDED = [
  ...new Set(
    globSync(['lib/**/*.ts', 'examples/gateway/{,!(console)/}*.ts'], { cwd: ROOT })
      .flatMap((file) => [
        ...readFileSync(join(ROOT, file), 'utf8').matchAll(
          /(?:from |import\()'((?:@[\w-]+\/)?[\w-]+)[\w/.-]*'/g,
        ),
      ])
      .map(([, name = '']) => name),
  ),
].filter((name) => name in toolkit.devDependencies && !['express', ...ONLY_HERE].includes(name))

describe('the manifests of both packages', () => {
  test('have the same version, license, author and engines, and the server brings exactly that toolkit', () => {
    for (const member of ['version', 'license', 'author', 'engines', 'type']) {
      assert.deepEqual(server[member], toolkit[member], member)
    }
    assert.equal(brought, toolkit.version)
  })

  test('have the same licence beside them', () => {
    const [of, and] = [FOLDERS.toolkit, FOLDERS.server].map((folder) =>
      readFileSync(join(ROOT, folder, 'LICENSE'), 'utf8'),
    )
    assert.equal(of, and)
  })

  test('name all that the gateway loads when it is needed: as an optional peer, and as a dependency of the server', () => {
    assert.ok(LOADED_WHEN_NEEDED.length >= 10)
    const optional = Object.keys(toolkit.peerDependencies).filter(
      (name) => toolkit.peerDependenciesMeta[name]?.optional && !name.startsWith('@types/'),
    )
    assert.deepEqual(optional.sort(), LOADED_WHEN_NEEDED.sort())
    assert.deepEqual(Object.keys(others).sort(), [...LOADED_WHEN_NEEDED, 'express'].sort())
  })

  for (const [name, range] of Object.entries(others)) {
    test(`${name}: the server takes what the tests run with, which the toolkit takes too`, () => {
      const tested = toolkit.devDependencies[name] as string
      assert.equal(range, `^${tested}`)
      assert.ok(takes(toolkit.peerDependencies[name] as string, tested), toolkit.peerDependencies[name])
    })
  }
})

/** Whether a version is in a range: `*`, or a caret in front of a version from 1.0.0 on. */
function takes(range: string, version: string): boolean {
  if (range === '*') return true
  const least = /^\^([1-9]\d*)\.(\d+)\.(\d+)$/.exec(range)?.slice(1).map(Number) as number[]
  const [major = 0, minor = 0, patch = 0] = version.split('.').map(Number)
  const [least0 = 0, least1 = 0, least2 = 0] = least
  return major === least0 && (minor > least1 || (minor === least1 && patch >= least2))
}
