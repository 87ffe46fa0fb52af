import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { readAttribution, readTags } from '../../../lib/core/call/index.ts'
import type { Tags } from '../../../lib/core/catalog/index.ts'

/** The tags of a call whose key, header and body have some. */
function tagsOf(own: Tags | undefined, header: string | undefined, metadata: object = {}) {
  const call = {
    principal: own ? { tags: own } : null,
    protocol: { name: 'openai' },
    user: null as string | null,
    tags: null as Tags | null,
  }
  readTags(call, header)
  readAttribution(call, { metadata })
  return { ...call.tags }
}

describe('the tags of key, header and body together', () => {
  it('are those of the key where the header is blank', () => {
    for (const header of ['', ' ', undefined])
      assert.deepEqual(tagsOf({ cost: 'c0' }, header), { cost: 'c0' })
  })

  it('are the first sixteen of the header and the body', () => {
    const many = (name: string, count: number) => Array.from({ length: count }, (_, i) => `${name}${i}`)
    const metadata = Object.fromEntries(many('m', 20).map((name) => [name, 'v']))
    const header = (names: string[]) => names.map((name) => `${name}=v`).join(',')
    const names = (given: string[]) => Object.keys(tagsOf(undefined, header(given), metadata)).sort()
    for (const count of [0, 2, 15, 16]) {
      const given = many('h', count)
      assert.deepEqual(names(given), [...given, ...many('m', 16 - count)].sort())
    }
  })
})
