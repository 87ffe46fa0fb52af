import assert from 'node:assert/strict'
import { beforeEach, describe, it } from 'node:test'
import { AnswerBody } from '../../../lib/middleware/idempotency/answer-body.ts'

let body: AnswerBody
beforeEach(() => {
  body = new AnswerBody(8)
})

const CUT = '\n[cut after 8 bytes]'

describe('the body of an answer that is kept', () => {
  it('is nothing as long as nothing was sent', () => {
    assert.deepEqual([body.empty, body.text()], [true, null])
    for (const chunk of [undefined, null, () => {}, '', Buffer.alloc(0)]) body.addSent(chunk)
    assert.deepEqual([body.empty, body.text()], [true, null])
  })

  it('is all that was sent, texts and bytes, characters cut in two included', () => {
    const euro = Buffer.from('€')
    body.addSent('a')
    body.addSent(euro.subarray(0, 1))
    body.addSent(euro.subarray(1))
    body.addSent(new Uint8Array([0x62]))
    assert.deepEqual([body.empty, body.text()], [false, 'a€b'])
    body.addSent(euro.subarray(0, 2))
    assert.equal(body.text(), 'a€b\ufffd')
    body.addSent('c')
    assert.equal(body.text(), 'a€b\ufffdc')
  })

  it('is of a text in base64 or hexadecimal the bytes, of any other the text', () => {
    const of = (text: string, encoding?: unknown) => {
      const each = new AnswerBody(8)
      each.addSent(text, encoding)
      return each.text()
    }
    assert.deepEqual(
      [
        of('aGk=', 'base64'),
        of('aGk', 'BASE64URL'),
        of('6869', 'hex'),
        of('é', 'latin1'),
        of('é', 'utf8'),
        of('6869', 7),
      ],
      ['hi', 'hi', 'hi', 'é', 'é', '6869'],
    )
    assert.equal(of('aGk=', 'xbase64'), 'aGk=')
  })

  it('is cut behind so many bytes, and says so', () => {
    body.addSent('12345678')
    assert.equal(body.text(), '12345678')
    body.addSent('9')
    assert.equal(body.text(), `12345678${CUT}`)
    body.addSent('x')
    assert.equal(body.text(), `12345678${CUT}`)
    const bytes = new AnswerBody(8)
    bytes.addSent(Buffer.from('1234567'))
    bytes.addSent(Buffer.from('89'))
    bytes.addSent('')
    assert.equal(bytes.text(), `12345678${CUT}`)
    assert.equal(new AnswerBody(0).text('a'), null)
  })

  it('counts characters that are several bytes by their bytes', () => {
    body.addSent('€€')
    body.addUnsent('€€€')
    assert.equal(body.text(), `€€${CUT}`)
    assert.equal(new AnswerBody(8).text('€€€'), `€€${CUT}`)
  })

  it('holds what belongs to it and was not sent, and nothing that is sent behind that', () => {
    body.addSent('a')
    body.addUnsent('b')
    body.addSent('error')
    body.addUnsent([Buffer.from('c'), Buffer.from('d')])
    assert.equal(body.text(), 'abcd')
    assert.equal(body.text('e'), 'abcd', 'what is to come is among it')
  })

  it('returns what it will be with what is still to come, and stays as it is', () => {
    body.addSent('a')
    assert.equal(body.text('b'), 'ab')
    assert.equal(body.text(Buffer.from('c')), 'ac')
    assert.equal(body.text([Buffer.from('d'), Buffer.from('e')]), 'ade')
    assert.equal(body.text('12345678'), `a1234567${CUT}`)
    assert.equal(body.text(), 'a')
    body.addSent('12345678')
    assert.equal(body.text('x'), `a1234567${CUT}`)
  })

  it('is nothing any more once it is discarded, whatever comes', () => {
    body.addSent('a')
    body.discard()
    assert.deepEqual([body.empty, body.text(), body.text('b')], [true, null, null])
    body.addSent('c')
    body.addUnsent('d')
    assert.deepEqual([body.empty, body.text()], [true, null])
  })
})
