import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { parsedBytes } from '../../../lib/core/json/index.ts'

const WIDE = /[^\0-\xff]/

/** Returns what the strings of a parsed text take: each takes two bytes a character if it has one that takes them. */
function stringBytes(value: unknown): number {
  if (typeof value === 'string') return WIDE.test(value) ? 2 * value.length : value.length
  if (typeof value !== 'object' || value === null) return 0
  return Object.entries(value).reduce(
    (sum, [name, member]) => sum + stringBytes(name) + stringBytes(member),
    0,
  )
}

/** Writes a text as JSON, as clients do or with an escape for each character beyond ASCII, as those in Python do. */
const written = (value: unknown, escaped: boolean): Buffer => {
  const json = JSON.stringify(value)
  const asEscape = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`
  return Buffer.from(escaped ? json.replace(/[^\0-\x7f]/g, asEscape) : json)
}

describe('the memory of a parsed text', () => {
  it('is at least that of its strings, of one or two bytes a character', () => {
    const unit = fc.constantFrom('a', '"', '\\', '\n', 'é', '汉', '😀', 'base64'.repeat(400))
    const text = fc.string({ unit, maxLength: 12 })
    const value = fc.letrec((tie) => ({
      value: fc.oneof(
        { maxDepth: 3 },
        text,
        fc.integer(),
        fc.array(tie('value')),
        fc.dictionary(text, tie('value')),
      ),
    })).value
    fc.assert(
      fc.property(value, fc.boolean(), (json, escaped) => {
        const raw = written(json, escaped)
        const bytes = parsedBytes(raw, 0)
        assert.ok(bytes >= stringBytes(JSON.parse(raw.toString())))
        assert.ok(bytes <= 2 * raw.length)
      }),
    )
  })

  it('is that of a file in base64 once, whatever words stand beside it', () => {
    const file = 'A'.repeat(5_000_000)
    for (const words of ['What is this?', '这是什么？', 'Qué "es" esto?\n'])
      for (const escaped of [false, true]) {
        const raw = written(
          { messages: [{ content: [{ text: words }, { url: `data:image/png;base64,${file}` }] }] },
          escaped,
        )
        assert.ok(parsedBytes(raw, 0) < file.length + 1000)
      }
  })

  it('has an object for each value', () => {
    assert.ok(parsedBytes(Buffer.from('[1]'), 100) >= 6400)
  })
})
