import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { bytesOf } from '../../../support/byte-upstream.ts'
import { assertUnread, judge, NAMING, namedIn, refusalOf, type SentRequest, typed } from './sent-body.ts'

describe('a form', () => {
  it('passes as a stream whose names are judged', async () => {
    for (const type of [
      'multipart/form-data; boundary=b',
      'MULTIPART/FORM-DATA;boundary="b"',
      'multipart/form-data \t; charset=utf-8\t ;\tboundary=b ; charset=utf-8 ; ',
    ]) {
      const req = typed(type, NAMING)
      const judged = await judge(req)
      assert.deepEqual([judged.source, namedIn(judged), judged.bytes], [req, [], 0], type)
      const part = (name: string) =>
        Buffer.from(`--b\r\nContent-Disposition: form-data; name="${name}"\r\n\r\nx\r\n`)
      judged.watch?.(part('purpose'))
      assert.throws(() => judged.watch?.(part('file_id')), { code: 'unsupported_feature' }, type)
    }
  })

  it('needs a boundary that everybody reads alike', async () => {
    for (const type of [
      'multipart/form-data',
      'multipart/form-data; boundary=',
      'multipart/form-data; boundary=""',
      'multipart/form-datax; boundary=b',
      'multipart/form-data, multipart/form-data; boundary=b',
      'multipart/form-data; boundary=b c',
      'multipart/form-data; boundary=b; x=y',
      'multipart/form-data; boundary=b x',
      `multipart/form-data; boundary="${'b'.repeat(201)}"`,
    ]) {
      const { code, message } = await refusalOf(typed(type, NAMING))
      assert.equal(code, 'invalid_request', type)
      assert.match(message, /boundary of the form/)
    }
    const longest = await judge(typed(`multipart/form-data; boundary=${'b'.repeat(200)}`, NAMING))
    assert.notEqual(longest.watch, undefined)
  })

  it('that is encoded as a URL is read whole, and names nothing', async () => {
    for (const type of [
      'application/x-www-form-urlencoded',
      'Application/X-WWW-Form-URLEncoded; charset=utf-8',
    ]) {
      const text = '{"a=b&c=file_id;d=e'
      const judged = await judge(typed(type, text))
      assert.deepEqual([namedIn(judged), judged.json, judged.bytes], [[], undefined, text.length])
      assert.equal(String(await bytesOf(judged.source as SentRequest)), text)
      for (const naming of [
        'file_id=f',
        'a=b&file_ids[]=f',
        'a=b;file_id=f',
        'a;file%5Fid',
        'a=b;c=d;thread[id]=t',
      ]) {
        const { code, param } = await refusalOf(typed(type, naming))
        assert.equal(code, 'unsupported_feature', naming)
        assert.match(param ?? '', /id/)
      }
    }
    const beside = typed('x-application/x-www-form-urlencoded', 'file_id=f')
    assertUnread(await judge(beside), beside)
  })
})
