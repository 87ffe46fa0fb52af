import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'

interface LockedPackage {
  readonly version?: string
  readonly integrity?: string
  readonly resolved?: string
}

// npm writes an entry without a version when it installs beside `node_modules`. npm 10 to 11.13 pass over it; `npm ci` of
// 11.19 refuses the file.
for (const path of ['package-lock.json', 'docs/site/package-lock.json'])
  test(`each package of ${path} has a version and a checksum, and no address`, () => {
    const { packages } = JSON.parse(readFileSync(path, 'utf8')) as { packages: Record<string, LockedPackage> }
    const installed = Object.entries(packages).filter(([name]) => name !== '')
    assert.ok(installed.length > 0)
    const faults = installed.filter(
      ([, { version, integrity, resolved }]) => !version || !integrity || resolved,
    )
    assert.deepEqual(faults, [])
  })
