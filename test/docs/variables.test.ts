import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { it } from 'node:test'
import { readSettings, VARIABLES } from '../../examples/gateway/config/environment.ts'
import { ROOT } from './pages.ts'

/** The names of the variables that the settings are read from. */
function namesRead(): Set<string> {
  const names = new Set(Object.keys(VARIABLES.shape))
  const get = (given: object, name: string) => {
    names.add(name)
    return Reflect.get(given, name)
  }
  readSettings(new Proxy({}, { get }) as NodeJS.ProcessEnv)
  return names
}

/** The names in a part of a page, without `OIDC_…`, which stands for several. */
function namesIn(page: string, heading: string): string[] {
  const [, behind = ''] = readFileSync(join(ROOT, page), 'utf8').split(`\n## ${heading}\n`)
  const [part = ''] = behind.split('\n## ')
  return [...part.matchAll(/`([A-Z][A-Z_]+[A-Z])`/g)].map(([, name = '']) => name)
}

it('the pages name every variable that the gateway reads, and no other', () => {
  const told = new Set([
    ...namesIn('docs/run-the-gateway.md', 'Environment'),
    ...namesIn('docs/console.md', 'Single sign-on'),
  ])
  assert.deepEqual([...told].sort(), [...namesRead()].sort())
})
