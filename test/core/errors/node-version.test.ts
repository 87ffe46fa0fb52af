import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { globSync, readFileSync } from 'node:fs'
import { describe, it } from 'node:test'

/** Has a process read 20.19.0 as the version of its Node, as any other program does. */
const OLDER = `const { versions } = process
  Object.defineProperty(process, 'versions', { value: { ...versions, node: '20.19.0' } })
  ;(await import('node:module')).syncBuiltinESMExports()`

/** Names of these modules that Node 20 lacks. A module that imports one by name fails before any of its code runs. */
const LATER: Readonly<Record<string, RegExp>> = { 'node:zlib': /zstd/i, 'node:sqlite': /./ }
/** It is loaded in a thread of its own, when a database is opened. */
const LOADED_LATE = 'lib/stores/sql/driver/sqlite/sqlite-worker.ts'

describe('the package on a Node that is too old', () => {
  for (const name of [
    'express-model-gateway',
    'express-model-gateway/rate-limit',
    'express-model-gateway/gateway',
  ])
    it(`${name} reports the version that it needs, and nothing else`, () => {
      const args = [
        ...process.execArgv.filter((arg) => arg.startsWith('--conditions')),
        `--import=data:text/javascript,${encodeURIComponent(OLDER)}`,
        '--input-type=module',
        `--eval=import(${JSON.stringify(name)}).catch(({ message }) => console.log(message))`,
      ]
      const { stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' })
      assert.equal(stdout, 'express-model-gateway needs Node 22.19 or later; this is Node 20.19.0\n', stderr)
    })

  it('loads far enough to report that: no module imports a name that an older Node lacks', () => {
    const found = globSync('lib/**/*.ts').flatMap((file) => {
      if (file === LOADED_LATE) return []
      const imports = readFileSync(file, 'utf8').matchAll(/^import \{([^}]*)\} from '(node:\w+)'$/gm)
      return Array.from(imports).flatMap(([, names = '', from = '']) =>
        LATER[from]?.test(names) ? [`${file}: ${from}`] : [],
      )
    })
    assert.deepEqual(found, [])
  })
})
