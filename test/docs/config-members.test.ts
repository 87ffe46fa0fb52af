import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { it } from 'node:test'
import { configJsonSchema } from '../../lib/core/config/index.ts'
import { ROOT } from './pages.ts'

const PAGES = [
  'lib/core/config/README.md',
  'lib/middleware/forward/README.md',
  'lib/middleware/route/README.md',
  'docs/providers.md',
]
const text = PAGES.map((page) => readFileSync(join(ROOT, page), 'utf8')).join('\n')

interface Part {
  readonly properties?: Readonly<Record<string, Part>>
  readonly anyOf?: readonly Part[]
  readonly items?: Part
  readonly additionalProperties?: Part | boolean
  readonly default?: unknown
}

/** Every member, with its path and what holds without it. */
function membersOf(
  { properties = {}, anyOf = [], items, additionalProperties }: Part,
  path = '',
): { path: string; name: string; preset: unknown }[] {
  const own = Object.entries(properties).flatMap(([name, part]) => [
    { path: `${path}.${name}`, name, preset: part.default },
    ...membersOf(part, `${path}.${name}`),
  ])
  const inner = [...anyOf, items, additionalProperties].filter((part) => typeof part === 'object')
  return [...own, ...inner.flatMap((part) => membersOf(part, path))]
}

const members = membersOf(configJsonSchema())

it('the pages name every member of a config', () => {
  assert.ok(members.length > 100)
  const untold = members.filter(({ name }) => !new RegExp(`["\`]${name.replace('$', '\\$')}["\`]`).test(text))
  assert.deepEqual(
    untold.map(({ path }) => path),
    [],
  )
})

it('the pages say what holds without one', () => {
  const preset = members.filter((one) => one.preset !== undefined && typeof one.preset !== 'object')
  assert.ok(preset.length > 20)
  const untold = preset.filter(
    (one) => !new RegExp(`\`${one.name}\`(?: \\(| )\`?${one.preset}\\b`).test(text),
  )
  assert.deepEqual(
    untold.map(({ path }) => path),
    [],
  )
})
