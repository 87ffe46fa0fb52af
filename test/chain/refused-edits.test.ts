import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { envelopeOf } from '../support/answer-bodies.ts'
import { cleaningUp } from '../support/clean-up.ts'
import type { ScriptedUpstream } from '../support/scripted-upstream.ts'
import {
  answerEdit,
  CAT,
  catForm,
  type EditsGateway,
  editsGateway,
  formWith,
  LIMIT_BYTES,
  POOR_KEY,
} from './edits-gateway.ts'

let gateway: EditsGateway
let upstream: ScriptedUpstream
const cleanUp = cleaningUp()
before(async () => {
  gateway = await editsGateway(cleanUp)
  upstream = gateway.upstream
})

describe('an edit of images', () => {
  const image = () => new File([CAT], 'cat.png')
  const REFUSED: readonly [
    what: string,
    code: string,
    body: () => FormData | string,
    headers?: Record<string, string>,
  ][] = [
    ['too large', 'request_too_large', () => catForm({}, Buffer.alloc(LIMIT_BYTES))],
    [
      'broken off',
      'invalid_request',
      () => '--x\r\ncontent-disposition: form-data; name="model"\r\n\r\npic',
      { 'content-type': 'multipart/form-data; boundary=x' },
    ],
    ['without a boundary', 'invalid_request', () => '--x--', { 'content-type': 'multipart/form-data' }],
    ['without a model', 'invalid_request', () => formWith({ prompt: 'a hat', image: image() })],
    ['without an image', 'invalid_request', () => formWith({ model: 'pictures', prompt: 'a hat' })],
    [
      'with a text for an image',
      'invalid_request',
      () => formWith({ model: 'pictures', prompt: 'a', image: 'file-1' }),
    ],
    [
      'with two forms of a name',
      'invalid_request',
      () => formWith({ model: 'pictures', prompt: 'a', image: [image(), image()] }),
    ],
    ['with a variant of a name', 'invalid_request', () => catForm({ N: '9' })],
    ['with no number of images', 'invalid_request', () => catForm({ n: '0x2' })],
    ['with another word for true', 'invalid_request', () => catForm({ stream: 'True' })],
    [
      'streamed where the model does not',
      'unsupported_feature',
      () => catForm({ model: 'still', stream: 'true' }),
    ],
    ['with a file that nobody has', 'not_found', () => catForm({ 'images[][file_id]': 'file-foreign' })],
    [
      'in JSON with a file that nobody has',
      'not_found',
      () => JSON.stringify({ model: 'pictures', prompt: 'a', images: [{ file_id: 'file-foreign' }] }),
      { 'content-type': 'application/json' },
    ],
  ]
  for (const [what, code, body, headers] of REFUSED) {
    it(`${what} is refused: ${code}`, async () => {
      const [asked, before] = [upstream.requests.length, await gateway.spent()]
      const response = await gateway.post(body(), headers)
      assert.equal((await envelopeOf(response)).error.code, code)
      assert.deepEqual([upstream.requests.length, await gateway.spent()], [asked, before])
    })
  }

  it('holds all images that are asked for', async () => {
    upstream.script = answerEdit
    const asked = upstream.requests.length
    const response = await gateway.post(catForm({ n: '2' }), {}, POOR_KEY)
    assert.equal((await envelopeOf(response)).error.code, 'insufficient_balance')
    assert.equal(upstream.requests.length, asked)
    assert.equal((await gateway.post(catForm(), {}, POOR_KEY)).status, 200)
  })
})
