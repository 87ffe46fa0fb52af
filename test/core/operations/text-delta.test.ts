import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { countRawText, countText, soleTextMember } from '../../../lib/core/operations/tokens/text-delta.ts'
import { estimateTokens } from '../../../lib/core/operations/tokens/token-estimate.ts'

describe('the tokens of a text delta', () => {
  it('are none of nothing, and one of a few plain characters', () => {
    assert.equal(countText(''), 0)
    for (const text of ['a', '1234', "'ll", 'a1b2c3d4', '[]{}()<>', '\x7f'.repeat(8)])
      assert.equal(countText(text), 1, text)
    assert.ok(estimateTokens('a1b2c3d4') > 1, 'though it is estimated at more')
  })

  it('are estimated of a longer delta, or of another script', () => {
    for (const text of ['a1b2c3d4e', 'a1b2c3d\x80', '\x80a1b2c3d', 'Привет, мир!', '你好你好', '→←→'])
      assert.equal(countText(text), estimateTokens(text), text)
    assert.equal(countText('→←→'), 3)
    assert.equal(countText('a1b2c3d4e'), 9)
  })

  it('are those of the text that its JSON stands for', () => {
    const raw = (text: string) => Buffer.from(text).toString('latin1')
    assert.equal(countRawText('word'), 1)
    assert.equal(countRawText('a1b2c3d4e'), 9)
    assert.equal(countRawText('\\n\\n\\n\\n\\n'), 1, 'five line breaks, and not ten characters')
    assert.equal(countRawText('\\u2192\\u2190\\u2192'), 3)
    assert.equal(countRawText(raw('→←→')), 3)
    assert.equal(countRawText(raw('→\\n→')), countText('→\n→'))
    assert.equal(countRawText('\\'), 1, 'what is no JSON is counted as it stands')
    assert.equal(countRawText(''), 0)
  })
})

describe('the one member of a delta that holds text', () => {
  const KNOWN = new Set(['content', 'reasoning'])

  it('is the only one that says something', () => {
    assert.equal(soleTextMember({ content: 'a' }, KNOWN), 'content')
    assert.equal(
      soleTextMember({ role: 'assistant', type: 'text', reasoning: 'a', content: null }, KNOWN),
      'reasoning',
    )
    assert.equal(soleTextMember({ content: 'a', reasoning: '', refusal: null }, KNOWN), 'content')
  })

  it('is none where there is nothing, more, or anything else', () => {
    const others = [
      {},
      { content: '' },
      { content: 'a', reasoning: 'b' },
      { refusal: 'a' },
      { content: 'a', refusal: 'b' },
      { content: ['a'] },
      { content: 7 },
      { content: 'a', tool_calls: [] },
      { role: 'assistant' },
    ]
    for (const delta of others) assert.equal(soleTextMember(delta, KNOWN), undefined, JSON.stringify(delta))
  })
})
