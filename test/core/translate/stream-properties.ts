import assert from 'node:assert/strict'
import { it } from 'node:test'
import fc from 'fast-check'
import { type LineProtocol, type RelayOptions, relayTranslated } from './relayed.ts'

const words = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 12 }),
  fc.constantFrom(
    ' the',
    '\n\n',
    '"content":"',
    '"finish_reason":"stop"',
    'data: x',
    '\\',
    '😀',
    '中文',
    '\ud83d',
  ),
)
export const textPieces = fc.array(words, { maxLength: 6 })
export const wellFormed = (pieces: readonly string[]) => pieces.map((piece) => piece.toWellFormed())

/** JSON as providers print it: compact, or with a space behind colons and commas. */
export const jsonText = (json: unknown, spaced: boolean): string =>
  spaced ? JSON.stringify(json, null, 1).replace(/\n */g, ' ') : JSON.stringify(json)

/** A text in pieces. */
const inPieces = (text: fc.Arbitrary<string>) =>
  fc.tuple(text, fc.array(fc.nat(), { maxLength: 4 })).map(([whole, cuts]) => {
    const edges = [0, ...cuts.map((cut) => cut % (whole.length + 1)), whole.length].sort((a, b) => a - b)
    return edges.slice(1).map((edge, i) => whole.slice(edges[i], edge))
  })

const input = fc.dictionary(
  fc.string({ maxLength: 6 }).filter((name) => name !== '__proto__'),
  fc.jsonValue({ maxDepth: 2 }),
  { maxKeys: 3 },
)
export const toolCall = fc.record({
  name: fc.stringMatching(/^[a-z_]{1,12}$/),
  json: inPieces(input.map((value) => JSON.stringify(value))),
  /** Nothing at all is told of the arguments. */
  bare: fc.boolean(),
})

export type Tool = { name: string; json: string[]; bare: boolean }
export const inputOf = ({ json, bare }: Tool): unknown => (bare ? {} : JSON.parse(json.join('')))

/** The two properties of any translated stream: the same however it is cut, and whichever way it is read. */
export function testRelayPaths(line: LineProtocol, source: fc.Arbitrary<string>): void {
  const same = (stream: string, options: RelayOptions) => {
    const { text: whole, ...facts } = relayTranslated(line, stream)
    const { text, ...others } = relayTranslated(line, stream, options)
    assert.equal(text, whole)
    assert.deepEqual({ ...others, flowed: '' }, { ...facts, flowed: '' })
  }

  it('give the same however they are cut', () => {
    fc.assert(
      fc.property(source, fc.array(fc.nat(), { maxLength: 30 }), (stream, cuts) => same(stream, { cuts })),
      { numRuns: 200 },
    )
  })

  it('come out the same by the fast path as by the careful one', () => {
    fc.assert(
      fc.property(source, (stream) => same(stream, { careful: true })),
      { numRuns: 200 },
    )
  })
}
