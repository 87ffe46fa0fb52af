import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { DeltaTemplate, splitAtText } from '../../../../lib/middleware/route/relay/delta-template.ts'

const frame = (text: string, finish = 'null') =>
  `data: {"choices":[{"delta":{"content":"${text}"},"finish_reason":${finish}}]}\n\n`

/** The texts of the deltas that the template skims, and the position at which it stops. */
function skimmed(template: DeltaTemplate, text: string, from = 0) {
  const texts: string[] = []
  const end = template.skim(text, from, (delta) => texts.push(delta))
  return { texts, end }
}

describe('an event like one that was read', () => {
  const learned = (pattern = frame('a')) => {
    const template = new DeltaTemplate()
    template.learn(pattern, 'content')
    return template
  }

  it('is recognised by all but its text', () => {
    const text = frame('one') + frame('') + frame('three')
    assert.deepEqual(skimmed(learned(), text), { texts: ['one', '', 'three'], end: text.length })
    const behind = frame('x', '"stop"') + text
    const from = frame('x', '"stop"').length
    assert.deepEqual(skimmed(learned(), behind, from), { texts: ['one', '', 'three'], end: behind.length })
  })

  it('has a text with quotes and backslashes in it', () => {
    const texts = ['a\\"b', '\\\\', '\\\\\\"', 'a\\\\\\"}', '\\n']
    const text = texts.map((each) => frame(each)).join('')
    assert.deepEqual(skimmed(learned(), text), { texts, end: text.length })
  })

  it('is none that differs in front of its text or behind it', () => {
    for (const other of [
      frame('b', '"stop"'),
      ': comment\n\n',
      frame('b').replace('delta', 'delte'),
      'data: [DONE]\n\n',
    ]) {
      const text = frame('one') + other + frame('two')
      assert.deepEqual(skimmed(learned(), text), { texts: ['one'], end: frame('one').length }, other)
    }
  })

  it('is none whose text does not end', () => {
    const cut = frame('b').slice(0, frame('').indexOf('"}') + 1)
    assert.deepEqual(skimmed(learned(), cut), { texts: [], end: 0 })
  })

  it('is none before one was read, and none after that is forgotten', () => {
    assert.deepEqual(skimmed(new DeltaTemplate(), frame('a')), { texts: [], end: 0 })
    const template = learned()
    template.forget()
    assert.deepEqual(skimmed(template, frame('a')), { texts: [], end: 0 })
    template.learn(frame('a', '1'), 'content')
    assert.deepEqual(skimmed(template, frame('b', '1')).texts, ['b'])
    template.learn('data: {}\n\n', 'content')
    assert.deepEqual(skimmed(template, 'data: {}\n\n'), { texts: [], end: 0 })
  })
})

describe('an event is split at its text', () => {
  it('at the last member of that name, with a blank before the value or without', () => {
    assert.deepEqual(splitAtText('{"a":"x","a":"y"}', 'a'), { before: '{"a":"x","a":"', after: '"}' })
    assert.deepEqual(splitAtText('{"a": "x"}', 'a'), { before: '{"a": "', after: '"}' })
    assert.deepEqual(splitAtText('{"a":"\\""}', 'a'), { before: '{"a":"', after: '"}' })
  })

  it('not where there is no such member, or none with a text that ends', () => {
    for (const text of ['{}', '{"b":"x"}', '{"a":7}', '{"a":"x', '{"a":"x\\"'])
      assert.equal(splitAtText(text, 'a'), undefined, text)
  })
})
