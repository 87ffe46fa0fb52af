import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { inspect } from 'node:util'
import fc from 'fast-check'
import { redactUpstreamText } from '../../../lib/routing/attempt/redact-upstream-text.ts'
import { cpuMsOf } from '../../support/cpu-time.ts'

const codes = (text: string, write: (code: number) => string, between = '') =>
  Array.from(text, (character) => write(character.codePointAt(0) as number)).join(between)

/** How an upstream may write what it quotes. */
const ESCAPINGS: Readonly<Record<string, (text: string) => string>> = {
  plain: (text) => text,
  'upper case': (text) => text.toUpperCase(),
  'lower case': (text) => text.toLowerCase(),
  JSON: (text) => JSON.stringify(text),
  'JSON twice': (text) => JSON.stringify(JSON.stringify(text)),
  'all as \\u': (text) => codes(text, (code) => `\\u${code.toString(16).padStart(4, '0')}`),
  'all as \\x': (text) => codes(text, (code) => `\\x${code.toString(16)}`),
  'HTML entities': (text) => codes(text, (code) => `&#${code};`),
  'hexadecimal HTML entities': (text) => codes(text, (code) => `&#x${code.toString(16)};`),
  'HTML text': (text) => text.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll(' ', '&nbsp;'),
  'a URL': (text) => encodeURIComponent(text.toWellFormed()),
  'a URL, all of it': (text) => codes(text, (code) => `%${code.toString(16)}`),
  'form data': (text) => new URLSearchParams({ q: text }).toString(),
  base64: (text) => Buffer.from(text).toString('base64'),
  base64url: (text) => Buffer.from(text).toString('base64url'),
  hexadecimal: (text) => Buffer.from(text).toString('hex'),
  'character codes': (text) => codes(text, String, ' '),
  'bytes of Python': (text) => `b'${codes(text, (code) => `\\x${code.toString(16)}`)}'`,
  'a string of Python': (text) => `'${text.replaceAll("'", "\\'")}'`,
  'an object of Node': (text) => inspect({ content: text }, { compact: false }),
  'white space folded': (text) => text.replace(/\s+/g, ' '),
  'no white space': (text) => text.replace(/\s+/g, ''),
  'spaced out': (text) => Array.from(text).join(' '),
  'joined by _': (text) => text.replace(/\W+/g, '_'),
  reversed: (text) => Array.from(text).reverse().join(''),
  'cut at the end': (text) => `${text.slice(0, Math.ceil(text.length * 0.6))}...`,
  'cut at the beginning': (text) => `…${text.slice(text.length / 3)}`,
}

/** No word of it is one of an error, whatever an escaping leaves or cuts off. */
const secretWord = fc
  .tuple(
    fc.string({ unit: fc.constantFrom(...'bcdfghjkvwxz'), minLength: 4, maxLength: 12 }),
    fc.nat(99_999),
    fc.constantFrom('', 'ß', '語', '😀', "'", '"', '<', '\\', '\n'),
  )
  .map((pieces) => pieces.join(''))
const secret = fc.array(secretWord, { minLength: 1, maxLength: 8 }).map((words) => words.join(' '))
const around = fc.constantFrom(
  ['', ''],
  ['Invalid request: ', ' is not supported'],
  ['The model failed on "', '", try another one'],
  ['messages[0].content: ', ''],
  ['error:', ':error'],
)

const wordsOf = (text: string) => redactUpstreamText(text).split(' ')

describe('the words that the trace records of an upstream’s text', () => {
  for (const [name, escaped] of Object.entries(ESCAPINGS)) {
    it(`contain nothing of a quoted prompt: ${name}`, () => {
      fc.assert(
        fc.property(secret, around, (prompt, [before = '', after = '']) => {
          const allowed = new Set([
            ...wordsOf(before),
            ...wordsOf(after),
            '…',
            '',
            'content',
            'try',
            'another',
            'one',
          ])
          const kept = wordsOf(`${before}${escaped(prompt)}${after}`)
          assert.deepEqual(
            kept.filter((word) => !allowed.has(word)),
            [],
            `${kept.join(' ')} of ${escaped(prompt)}`,
          )
        }),
        { numRuns: 100 },
      )
    })
  }

  it('are not phrases: words that connect a sentence are omitted', () => {
    const phrases = ['I love you', 'my password is "open sesame"', 'tell me what it is that she said to him']
    for (const phrase of phrases)
      assert.doesNotMatch(redactUpstreamText(phrase), /\b(?:I|is|my|it|that|you|to)\b/)
  })

  const ROWS: readonly [string, string][] = [
    [
      'Incorrect API key provided: sk-12345. Find yours at https://a.test',
      'Incorrect API key provided … at https …',
    ],
    ['invalid_request_error', 'invalid_request_error'],
    [
      'InputTextSensitiveContentDetected.PolicyViolation',
      'InputTextSensitiveContentDetected.PolicyViolation',
    ],
    ['AccountOverdueError', 'AccountOverdueError'],
    ['RESOURCE_EXHAUSTED', 'RESOURCE_EXHAUSTED'],
    ['messages[12].content[3].image_url', 'messages[].content[].image_url'],
    [
      'Rate limit reached for gpt-4o on tokens per min (TPM): Limit 30000',
      'Rate limit reached … tokens per min TPM Limit …',
    ],
    ['upstream connect error or disconnect/reset before headers', 'upstream connect error … before headers'],
    ['The server is overloaded', '… server … overloaded'],
    ['The model `prompt` does not exist', '… model … does not …'],
    ['Cannot read "a secret prompt" of the user\'s input', 'Cannot read … user … input'],
    ["failed on 'the request is", 'failed …'],
    ['invalid_hunter_error', '…'],
    ['iNvAlId', '…'],
    ['', ''],
  ]
  for (const [text, kept] of ROWS)
    it(`${text || 'nothing'}: ${kept}`, () => assert.equal(redactUpstreamText(text), kept))

  it('are short for any text, and cost little time', () => {
    const texts = [
      'error '.repeat(1e6),
      'x'.repeat(1e7),
      '_'.repeat(1e6),
      'a_'.repeat(1e6),
      '[1]'.repeat(1e6),
      '"'.repeat(1e6),
    ]
    const ms = cpuMsOf(() => {
      for (const text of texts) assert.ok(redactUpstreamText(text).length <= 210)
    })
    assert.ok(ms < 1000, `${ms} ms`)
  })
})
