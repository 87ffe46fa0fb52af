import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { redactPrompt } from '../../../lib/routing/attempt/redact-prompt.ts'
import { cpuMsOf } from '../../support/cpu-time.ts'

const sentOf = (content: string, extra: object = {}) => {
  const json = { model: 'm', messages: [{ role: 'user', content }], ...extra }
  return { raw: Buffer.from(JSON.stringify(json)), json }
}

/** Words as people write them, some of which errors have, too. */
const word = fc.constantFrom(
  ...`heron lake morning grandmother password invoice berlin surgery salary therapy the a of in is to my his her request
  content model image generate please error token file with 4711 1999 12 Ünal 東京 naïve don't e-mail C++ O’Brien`.split(
    /\s+/,
  ),
)
const prompt = fc.array(word, { minLength: 3, maxLength: 30 }).map((words) => words.join(' '))

/** How an upstream may write what it quotes. */
const QUOTINGS: Readonly<Record<string, (text: string) => string>> = {
  plain: (text) => text,
  'in quotes': (text) => JSON.stringify(text),
  'as JSON in JSON': (text) => JSON.stringify(JSON.stringify({ content: text })),
  'as a string of Python': (text) => `'${text.replaceAll("'", "\\'")}'`,
  'in upper case': (text) => text.toUpperCase(),
  'in lower case': (text) => text.toLowerCase(),
  'without white space': (text) => text.replace(/\s+/g, ''),
  'over lines': (text) => text.replace(/\s+/g, '\n\t'),
  'with commas': (text) => text.split(' ').join(', '),
  'joined by _': (text) => text.replace(/\W+/g, '_'),
  'as HTML': (text) => text.replaceAll(' ', '&nbsp;').replaceAll("'", '&#39;'),
  'as form data': (text) => new URLSearchParams({ q: text }).toString(),
  'as a URL': (text) => encodeURIComponent(text),
  'in base64': (text) => Buffer.from(text).toString('base64'),
  'as character codes': (text) => Array.from(text, (character) => character.codePointAt(0)).join(', '),
  'cut at the end': (text) => `${text.slice(0, Math.ceil(text.length * 0.6))}...`,
  'cut at the beginning': (text) => `…${text.slice(text.length / 3)}`,
}
const around = fc.constantFrom(
  ['', ''],
  ['Invalid request: ', ' is not supported'],
  ["messages[0].content: '", "' does not match"],
  ['Unsupported value ', ''],
)

const lettersOf = (text: string) =>
  text
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, ' ')
    .trim()
    .split(' ')

/** The longest run of words that stands in both, as the number of its words and of its letters. */
function longestRun(kept: string, whole: string): [words: number, letters: number] {
  const haystack = ` ${lettersOf(whole).join(' ')} `
  let longest: [number, number] = [0, 0]
  for (const part of kept.split('…')) {
    const words = lettersOf(part).filter((one) => one !== '')
    for (let from = 0; from < words.length; from++) {
      for (let to = words.length; to > from + longest[0]; to--) {
        const run = words.slice(from, to)
        if (haystack.includes(` ${run.join(' ')} `)) longest = [to - from, run.join('').length]
      }
    }
  }
  return longest
}

describe('an upstream’s message, redacted of the prompt,', () => {
  for (const [name, quoted] of Object.entries(QUOTINGS)) {
    it(`contains no sequence of its words: ${name}`, () => {
      fc.assert(
        fc.property(prompt, around, (text, [before = '', after = '']) => {
          const kept = redactPrompt(`${before}${quoted(text)}${after}`, sentOf(text))
          const [words, letters] = longestRun(kept, text)
          assert.ok(words < 3 && (words < 2 || letters < 12), `${kept} of ${text}`)
          // No word that says anything.
          for (const telling of [
            'heron',
            'lake',
            'grandmother',
            'berlin',
            'surgery',
            'salary',
            '4711',
            '1999',
            'nal',
            '東京',
          ])
            if (text.toLowerCase().includes(telling))
              assert.ok(!kept.toLowerCase().includes(telling), `${kept} of ${text}`)
        }),
        { numRuns: 80 },
      )
    })
  }

  it('is compared with the whole request: instructions, tools, and nested members', () => {
    const extra = { tools: [{ function: { name: 'pay_salary', parameters: { properties: { heron: {} } } } }] }
    const kept = redactPrompt(
      'Invalid tool pay_salary: heron, ostrich and penguin are not allowed',
      sentOf('penguin', extra),
    )
    assert.equal(kept, 'Invalid tool … ostrich and … are not allowed')
  })

  it('is otherwise unchanged', () => {
    const message =
      "Unsupported value: 'temperature' does not support 0.3 with this model, only the default (1) value."
    assert.equal(redactPrompt(message, sentOf('a heron')), message.slice(0, -1))
  })

  it('contains only words of errors if the request is unknown, or large', () => {
    const message = 'Invalid request: ostrich'
    assert.equal(redactPrompt(message, undefined), 'Invalid request …')
    assert.equal(redactPrompt(message, sentOf('x'.repeat(300_000))), 'Invalid request …')
  })

  it('costs little time for any text', () => {
    const large = sentOf('the request is invalid '.repeat(11_000))
    const texts = [
      'the request is invalid '.repeat(1e5),
      'x'.repeat(1e6),
      "'".repeat(1e6),
      'a_'.repeat(1e6),
      '1.'.repeat(1e6),
    ]
    const ms = cpuMsOf(() => {
      for (const text of texts) assert.ok(redactPrompt(text, large).length <= 600)
    })
    assert.ok(ms < 2000, `${ms} ms`)
  })
})
