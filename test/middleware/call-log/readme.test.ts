import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { it } from 'node:test'
import { z } from 'zod'
import { call } from '../../../lib/endpoints/calls/call-schema.ts'

const pages = ['lib/middleware/call-log/README.md', 'docs/troubleshooting.md']

interface Part {
  readonly properties?: Readonly<Record<string, Part>>
  readonly items?: Part
  readonly anyOf?: readonly Part[]
}

/** The names of all members, at every depth. */
function namesIn({ properties = {}, items, anyOf = [] }: Part): string[] {
  const parts = [...Object.values(properties), ...(items ? [items] : []), ...anyOf]
  return [...Object.keys(properties), ...parts.flatMap(namesIn)]
}

it('the pages name every member of an entry', () => {
  const text = pages.map((page) => readFileSync(page, 'utf8')).join()
  const names = new Set(namesIn(z.toJSONSchema(call, { unrepresentable: 'any' }) as Part))
  assert.ok(names.size > 60)
  assert.deepEqual(
    [...names].filter((name) => !new RegExp(`["\`.]${name}["\`]`).test(text)),
    [],
  )
})
