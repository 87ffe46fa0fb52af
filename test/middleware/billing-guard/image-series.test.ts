import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { cleaningUp } from '../../support/clean-up.ts'
import { answerJson, startUpstream, stream } from '../../support/scripted-upstream.ts'
import { billedGateway } from './billed-gateway.ts'

const USAGE = { generated_images: 3, output_tokens: 48_672, total_tokens: 48_672 }
const IMAGES = [0, 1, 2].map((i) => ({ url: `https://images.example/${i}`, size: '2496x1664' }))
const ASKED = { model: 'chat', prompt: 'three cats', sequential_image_generation: 'auto' }

const event = (type: string, members: object): string =>
  `event: image_generation.${type}\ndata: ${JSON.stringify({ type: `image_generation.${type}`, ...members })}\n\n`
const EVENTS = [
  ...IMAGES.map((image, i) => event('partial_succeeded', { image_index: i, ...image })),
  event('completed', { usage: USAGE }),
]

describe('a series of images', async () => {
  const cleanUp = cleaningUp()
  const upstream = await startUpstream()
  cleanUp.after(() => upstream.close())

  it('is held for as a whole, and each of its images is charged', async (t) => {
    upstream.script = (res) => answerJson(res, 200, { created: 1, data: IMAGES, usage: USAGE })
    const gateway = await billedGateway(t, {
      lines: [{ url: upstream.url, price: {} }],
      model: { kind: 'image', maxOutputTokens: 17_000, price: { perImage: '0.04' } },
    })
    const billed = async (extra: object) => {
      const response = await gateway.post('/v1/images/generations', { ...ASKED, ...extra })
      await response.text()
      const { usage, billing } = await gateway.entry(response.headers.get('x-request-id'))
      return [usage?.images, usage?.source, billing?.reserved, billing?.charged]
    }
    const options = { sequential_image_generation_options: { max_images: 4 } }
    assert.deepEqual(await billed(options), [3, 'measured', '0.16', '0.12'])
    assert.deepEqual(await billed({}), [3, 'measured', '0.6', '0.12'])
    const single = { ...options, sequential_image_generation: 'disabled' }
    assert.deepEqual(await billed(single), [1, 'bounded', '0.04', '0.04'])
  })

  it('is streamed to its end, and charged by the usage that ends it', async (t) => {
    upstream.script = (res) => stream(res, [...EVENTS, 'data: [DONE]\n\n'])
    const gateway = await billedGateway(t, {
      lines: [{ url: upstream.url, price: {} }],
      model: { kind: 'image', maxOutputTokens: 17_000, price: { outputPerMillion: '10' } },
    })
    const response = await gateway.post('/v1/images/generations', { ...ASKED, stream: true })
    const text = await response.text()
    assert.equal(response.status, 200, text)
    assert.equal(text.trimEnd(), EVENTS.join('').trimEnd())
    assert.deepEqual(await gateway.books(), { spent: '0.48672', charges: 1 })
  })
})
