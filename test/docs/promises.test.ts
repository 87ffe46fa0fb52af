import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { ROOT } from './pages.ts'

const [, promises = ''] = readFileSync(join(ROOT, 'SECURITY.md'), 'utf8').split('## Promises')
const named = [...promises.matchAll(/`([\w/-]+\w)`/g)].map(([, path = '']) => path)

describe('the tests that SECURITY.md names for its promises', () => {
  it('are found', () => assert.ok(named.length > 30))

  for (const path of named) {
    // A contract is a suite that the test of each backend runs.
    it(`${path} is there`, () =>
      assert.ok(['.test.ts', '.ts'].some((ending) => existsSync(join(ROOT, 'test', path + ending)))))
  }
})
