import assert from 'node:assert/strict'
import { globSync } from 'node:fs'
import { it } from 'node:test'
import { filesOf, SUITES, type SuiteName } from '../../support/runner/suites.ts'

it('every test file is run by exactly one of the scripts', () => {
  const run = (Object.keys(SUITES) as SuiteName[]).flatMap(filesOf)
  assert.ok(run.length > 300)
  assert.deepEqual(
    run.toSorted(),
    globSync('**/*.test.ts', { exclude: ['node_modules/**', 'dist/**'] }).sort(),
  )
})
