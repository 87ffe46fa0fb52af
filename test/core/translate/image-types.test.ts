import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { chat } from './requests.ts'

const WEBP = Buffer.from([...Buffer.from('RIFF'), 0xff, 0xfe, 0xfd, 0xfc, ...Buffer.from('WEBPVP8 ')])
const PNG = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0])
const JPEG = Buffer.from([0xff, 0xd8, 0xff, 0xe0, 0])

const imageUrl = (said: string, bytes: Buffer) => `data:${said};base64,${bytes.toString('base64')}`
const asked = (image_url: unknown) => ({
  messages: [{ role: 'user', content: [{ type: 'image_url', image_url }] }],
})
const imageOf = (said: string, bytes: Buffer) => asked({ url: imageUrl(said, bytes) })

describe('an image of a chat', () => {
  const IMAGES: [said: string, bytes: Buffer, type: string][] = [
    ['image/jpg', JPEG, 'image/jpeg'],
    ['image/jpeg', PNG, 'image/png'],
    ['application/octet-stream', Buffer.from('GIF89a'), 'image/gif'],
    ['image/png', WEBP, 'image/webp'],
    ['image/png', Buffer.from('RIFF....WAVE'), 'image/png'],
    // What stands further behind is no beginning.
    ['image/png', Buffer.from(`AAAA${JPEG.toString('base64').slice(0, 4)}`, 'base64'), 'image/png'],
    ['image/gif', Buffer.concat([Buffer.alloc(3), WEBP]), 'image/gif'],
    ['image/png', Buffer.concat([Buffer.alloc(3), Buffer.from('GIF89a')]), 'image/png'],
    ['image/webp', Buffer.concat([Buffer.alloc(3), PNG]), 'image/webp'],
  ]
  for (const [said, bytes, media_type] of IMAGES) {
    it(`that is said to be ${said} is sent as ${media_type}`, () => {
      const { messages } = chat.translate(imageOf(said, bytes))
      const source = { type: 'base64', media_type, data: bytes.toString('base64') }
      assert.deepEqual(messages, [{ role: 'user', content: [{ type: 'image', source }] }])
    })
  }

  it('may be a URL without an object, as Mistral’s clients send it', () => {
    const given = { type: 'base64', media_type: 'image/png', data: PNG.toString('base64') }
    const sources = [
      [asked(imageUrl('image/png', PNG)), given],
      [asked('https://a.test/b.png'), { type: 'url', url: 'https://a.test/b.png' }],
    ] as const
    for (const [body, source] of sources)
      assert.deepEqual(chat.translate(body).messages, [
        { role: 'user', content: [{ type: 'image', source }] },
      ])
    const param = chat.refusedMember(asked(imageUrl('image/bmp', Buffer.from('BM'))))
    assert.equal(param, 'messages[0].content[0].image_url')
  })

  it('of another type is refused', () =>
    assert.equal(
      chat.refusedMember(imageOf('image/bmp', Buffer.from('BM'))),
      'messages[0].content[0].image_url.url',
    ))
})
