import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { gatewayFor, readExchange } from '../../../support/exchange.ts'
import { answerJson, startUpstream, stream, type UpstreamScript } from '../../../support/scripted-upstream.ts'

const MODERATED = { code: 'OutputImageSensitiveContentDetected', message: 'sensitive' }
const FAILED = { code: 'InternalServiceError', message: 'failed' }
const MADE = { url: 'https://images.example/0', size: '2496x1664' }
const USAGE = { generated_images: 0, output_tokens: 0, total_tokens: 0 }

type Item = { url: string } | { error: typeof MODERATED }

const plain =
  (items: readonly Item[]): UpstreamScript =>
  (res) =>
    answerJson(res, 200, { model: 'm', created: 1, data: items, usage: USAGE })

const streamed =
  (items: readonly Item[]): UpstreamScript =>
  (res) => {
    const events = items.map((item, image_index) => ({
      type: 'url' in item ? 'image_generation.partial_succeeded' : 'image_generation.partial_failed',
      image_index,
      ...item,
    }))
    const end = { type: 'image_generation.completed', usage: USAGE }
    return stream(
      res,
      [...events, end].map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`),
    )
  }

/** Asks for a series, on two lines that answer alike; returns what came, and how many lines were asked. */
async function ask(t: TestContext, script: UpstreamScript, isStream: boolean) {
  const upstreams = await Promise.all([startUpstream(script), startUpstream(script)])
  for (const upstream of upstreams) t.after(() => upstream.close())
  const gateway = await gatewayFor(t, {
    lines: upstreams.map(({ url }) => ({ url, models: { model: 'm' } })),
    config: { models: [{ id: 'model', kind: 'image' }] },
  })
  const body = { model: 'model', prompt: 'x', sequential_image_generation: 'auto', stream: isStream }
  const answer = await readExchange(await gateway.post('/v1/images/generations', body))
  return { answer, asked: upstreams.filter(({ requests }) => requests.length > 0).length }
}

for (const [form, script, isStream] of [
  ['plain', plain, false],
  ['streamed', streamed, true],
] as const) {
  describe(`a ${form} series of images`, () => {
    it('that moderation refused altogether is content_filtered, and asked of no other line', async (t) => {
      const { answer, asked } = await ask(t, script([{ error: MODERATED }, { error: MODERATED }]), isStream)
      assert.equal(answer.errorCode, 'content_filtered', answer.text)
      assert.equal(asked, 1)
    })

    it('that failed altogether is asked of the next line', async (t) => {
      const { answer, asked } = await ask(t, script([{ error: FAILED }]), isStream)
      assert.equal(answer.errorCode, 'all_candidates_failed', answer.text)
      assert.equal(asked, 2)
    })

    it('of which one image was made is an answer', async (t) => {
      const { answer, asked } = await ask(t, script([{ error: MODERATED }, MADE]), isStream)
      assert.equal(answer.status, 200, answer.text)
      assert.match(answer.text, /images\.example/)
      assert.equal(asked, 1)
    })
  })
}
