import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { dataUrl, readDataUrl } from '../../../lib/core/translate/parts/data-url.ts'
import { ask, message } from './requests.ts'

describe('a data URL', () => {
  it('is read up to its first comma, its type in lower case and without parameters', () => {
    assert.deepEqual(readDataUrl('data:image/PNG;base64,aGk='), { mediaType: 'image/png', data: 'aGk=' })
    assert.deepEqual(readDataUrl('DATA:text/plain;charset=utf-8;x=y;BASE64,a,b'), {
      mediaType: 'text/plain',
      data: 'a,b',
    })
    assert.deepEqual(readDataUrl('data:;base64,'), { mediaType: '', data: '' })
    assert.equal(dataUrl({ mediaType: 'image/png', data: 'aGk=' }), 'data:image/png;base64,aGk=')
  })

  it('is nothing else', () => {
    for (const url of [
      '',
      'data:image/png;base64',
      'data:image/png,aGk=',
      'https://a.test/a;base64,b',
      ' data:a;base64,b',
      'data:a;base64b',
      'data:a;base64;x,b',
      'data:a;base64x,b',
    ])
      assert.equal(readDataUrl(url), undefined, url)
  })

  it('has its comma within 200 characters', () => {
    const url = (length: number) => `data:${'x'.repeat(length - 'data:;base64'.length)};base64,aGk=`
    assert.equal(readDataUrl(url(199))?.data, 'aGk=')
    assert.equal(readDataUrl(url(200)), undefined)
  })
})

describe('the user of a message', () => {
  it('is hashed where it is longer than 64 characters', () => {
    const userOf = (user_id: unknown) => message.translate({ metadata: { user_id } }).user
    assert.equal(userOf('x'.repeat(64)), 'x'.repeat(64))
    assert.match(String(userOf('x'.repeat(65))), /^[0-9a-f]{64}$/)
    assert.equal(userOf(''), undefined)
  })
})

describe('a block that is none', () => {
  it('has no counterpart, in the result of a tool too', () => {
    for (const block of [null, 7, 'text', ['text'], {}, { type: 'constructor' }]) {
      const result = {
        type: 'tool_result',
        tool_use_id: 'toolu_1',
        content: [{ type: 'text', text: 'a' }, block],
      }
      const call = { type: 'tool_use', id: 'toolu_1', name: 'f', input: {} }
      const messages = [...ask, { role: 'assistant', content: [call] }, { role: 'user', content: [result] }]
      assert.equal(
        message.refusedMember({ messages }),
        'messages[2].content[0].content[1]',
        JSON.stringify(block),
      )
    }
  })
})
