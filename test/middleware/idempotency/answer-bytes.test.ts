import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { AnswerBody } from '../../../lib/middleware/idempotency/answer-body.ts'

/** A body of so many bytes at most, with what was sent. */
function bodyOf(limit: number, ...sent: (string | Uint8Array)[]): AnswerBody {
  const body = new AnswerBody(limit)
  for (const chunk of sent) body.addSent(chunk)
  return body
}

const textOf = (pieces: readonly Uint8Array[] | undefined) => pieces && Buffer.concat(pieces).toString()

describe('the bytes of an answer that is kept', () => {
  it('are as many as were sent and are still to come, and no more than may be kept', () => {
    for (const [sent, toCome, bytes] of [
      ['', null, 0],
      ['1234', null, 4],
      ['12345678', null, 8],
      ['123456789', null, 8],
      ['12', '€', 5],
      ['12', Buffer.from('345'), 5],
      ['12', [Buffer.from('345'), Buffer.from('6')], 6],
      ['12345678', '9', 8],
    ] as const)
      assert.equal(bodyOf(8, sent).bytesWith(toCome), bytes, `${sent} ${toCome}`)
    assert.equal(bodyOf(0, 'x').bytesWith('y'), 0)
  })

  it('are reported where there are more than so many, and are the same as the text', () => {
    for (const [most, sent, toCome, told] of [
      [3, ['1234'], null, '1234'],
      [4, ['1234'], null, undefined],
      [5, ['1234'], null, undefined],
      [4, ['12', Buffer.from('34'), '€'], null, '1234€'],
      [4, ['1234'], '5', '12345'],
      [5, ['1234'], '5', undefined],
      [4, ['12'], [Buffer.from('345')], '12345'],
      [4, [], 'hello', 'hello'],
      [4, [], null, undefined],
    ] as const) {
      const body = bodyOf(100, ...sent)
      const what = JSON.stringify([most, sent, toCome])
      assert.equal(textOf(body.bytesBeyond(most, toCome)), told, what)
      if (told !== undefined) assert.equal(body.text(toCome), told, what)
    }
  })

  it('are none where no more may be kept than is in the entry', () => {
    for (const limit of [7, 8]) assert.equal(bodyOf(limit, 'x'.repeat(20)).bytesBeyond(8, null), undefined)
    assert.equal(
      textOf(bodyOf(9, 'x'.repeat(20)).bytesBeyond(8, null)),
      `${'x'.repeat(9)}\n[cut after 9 bytes]`,
    )
  })

  it('are what was sent itself, and no copy', () => {
    const sent = Buffer.from('123456')
    const toCome = Buffer.from('789')
    const [first, second, ...more] = bodyOf(100, sent).bytesBeyond(4, [toCome]) ?? []
    assert.ok(first === sent && second === toCome)
    assert.deepEqual(more, [])
  })

  it('end with a note where they were cut, wherever that was', () => {
    const note = '\n[cut after 8 bytes]'
    assert.equal(textOf(bodyOf(8, '1234', '56789').bytesBeyond(4, null)), `12345678${note}`)
    assert.equal(textOf(bodyOf(8, '1234').bytesBeyond(4, '56789')), `12345678${note}`)
    assert.equal(textOf(bodyOf(8, '123456789').bytesBeyond(4, 'x')), `12345678${note}`)
    assert.equal(
      textOf(bodyOf(8, Buffer.from('1234'), Buffer.from('56789')).bytesBeyond(4, null)),
      `12345678${note}`,
    )
  })

  it('are none of a body that was discarded', () => {
    const body = bodyOf(100, '123456')
    body.discard()
    assert.deepEqual([body.bytesWith(null), body.bytesWith('1234567')], [0, 0])
    assert.equal(body.bytesBeyond(0, '1234567'), undefined)
  })

  it('hold what is still to come once, where it is among them already', () => {
    const body = bodyOf(100, '123')
    body.addUnsent('456')
    assert.equal(body.bytesWith('789'), 6)
    assert.equal(textOf(body.bytesBeyond(4, '789')), '123456')
  })
})
