import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Unfenced, unfenced } from '../../../lib/core/translate/chat-as-messages/unfenced.ts'

describe('the code block around an answer', () => {
  const ROWS: [given: string, made: string][] = [
    ['{}', '{}'],
    [' {} ', ' {} '],
    ['```\n{}\n```', '{}'],
    ['```json\n{}```', '{}'],
    ['\n ```json\n{}\n``` \n', '{}'],
    ['```\n{}', '{}'],
    ['```\n{}\n``', '{}\n``'],
    ['```\n{}\n````', '{}\n````'],
    ['```\n{}\n```\nDone.', '{}\n```\nDone.'],
    ['```\n', ''],
    ['```', ''],
    ['```\n\n{}', '\n{}'],
    ['``', '``'],
    [' `` ', ' `` '],
    ['``{}``', '``{}``'],
    ['`{}`\n```', '`{}`\n```'],
    ['{}\n```', '{}\n```'],
    ['', ''],
    [' \n ', ' \n '],
  ]
  for (const [given, made] of ROWS) {
    it(`is taken away, and nothing else is: ${JSON.stringify(given)}`, () => {
      const whole = given === '```' ? given : made
      assert.equal(unfenced(given), whole)
      const pieces = new Unfenced()
      assert.equal([...given].map((piece) => pieces.push(piece)).join('') + pieces.end(), whole)
    })
  }

  it('keeps back no more than what may be its beginning or its end', () => {
    const pieces = new Unfenced()
    const sent = [' ', '``', '`js', 'on\n{"a"', ':1}', ' \n', '``', '` ', 'x', '```'].map((piece) =>
      pieces.push(piece),
    )
    assert.deepEqual(sent, ['', '', '', '{"a"', ':1}', '', '', '', ' \n``` x', ''])
    assert.equal(pieces.end(), '')
    assert.equal(pieces.end(), '')
    const plain = new Unfenced()
    assert.deepEqual(
      ['`', 'a', '` \n'].map((piece) => plain.push(piece)),
      ['', '`a', '` \n'],
    )
    assert.equal(plain.end(), '')
  })
})
