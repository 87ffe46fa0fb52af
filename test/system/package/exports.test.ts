import assert from 'node:assert/strict'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import { test } from 'node:test'

const root = new URL('../../../', import.meta.url)
const manifest = JSON.parse(readFileSync(new URL('package.json', root), 'utf8')) as { exports: object }
const {
  './package.json': _,
  './gateway': assembled,
  './gateway/bin': program,
  ...subpaths
} = manifest.exports as Record<string, unknown>

const source = '@express-model-gateway/source'

/** Rooms of `core` that apps need; the others are plumbing, and nobody's API. */
const OF_CORE = ['errors', 'catalog', 'config', 'operations']

/** Folder of `lib` behind each public subpath. */
const PUBLIC: ReadonlyMap<string, string> = new Map<string, string>([
  ...globSync(
    [
      '{middleware,endpoints,stores}/*/index.ts',
      '{ledger,client}/index.ts',
      'management/{webhooks,openapi}/index.ts',
    ],
    { cwd: new URL('lib/', root) },
  ).map((face) => [`./${basename(dirname(face))}`, dirname(face)] as const),
  ['./admin', 'management'],
  ...OF_CORE.map((room) => [`./${room}`, `core/${room}`] as const),
])

test('every middleware, endpoint and store is a subpath of the package, with the ledger, the client, management and four rooms of core', () => {
  assert.deepEqual(Object.keys(subpaths).sort(), ['.', ...PUBLIC.keys()].sort())
})

test('every subpath offers the source to this repository and the build to everyone else, types first', () => {
  for (const [subpath, entry] of Object.entries(subpaths)) {
    const folder = PUBLIC.get(subpath)
    // A name that only other rooms need is no part of the API.
    const face = existsSync(new URL(`lib/${folder}/public.ts`, root)) ? 'public' : 'index'
    const path = subpath === '.' ? 'index' : `${folder}/${face}`
    const expected = {
      types: { [source]: `./lib/${path}.ts`, default: `./dist/${path}.d.ts` },
      [source]: `./lib/${path}.ts`,
      default: `./dist/${path}.js`,
    }
    // Text, not objects: the order of the conditions decides which of them wins.
    assert.equal(JSON.stringify(entry), JSON.stringify(expected), subpath)
  }
})

test('the assembled gateway and its program are subpaths too, of which this repository has the source in examples', () => {
  for (const [name, entry] of Object.entries({ index: assembled, bin: program })) {
    const file = `./examples/gateway/${name}.ts`
    const expected = {
      types: { [source]: file, default: `./dist/gateway/${name}.d.ts` },
      [source]: file,
      default: `./dist/gateway/${name}.js`,
    }
    assert.equal(JSON.stringify(entry), JSON.stringify(expected))
  }
})
