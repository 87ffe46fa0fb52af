import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import fc from 'fast-check'
import OpenAI, { AzureOpenAI } from 'openai'
import { envelopeOf } from '../support/answer-bodies.ts'
import { cleaningUp } from '../support/clean-up.ts'
import { KEY } from '../support/gateway.ts'
import { answerJson, type ScriptedUpstream, stream } from '../support/scripted-upstream.ts'
import {
  answerEdit,
  CAT,
  catForm,
  type EditsGateway,
  editsGateway,
  formWith,
  IMAGE,
  last,
  lastForm,
  OTHER_KEY,
  PATH,
  partsOf,
  png,
} from './edits-gateway.ts'

const DOG = Buffer.from(Array.from({ length: 100_000 }, (_, i) => (i * 7 + (i >> 8)) % 256))
const MASK = Buffer.from([0])
const event = (type: string): string =>
  `event: ${type}\ndata: ${JSON.stringify({ type, b64_json: IMAGE, size: '1024x1024', quality: 'low' })}\n\n`
const PARTIAL = event('image_edit.partial_image')
const COMPLETED = event('image_edit.completed')

let gateway: EditsGateway
let upstream: ScriptedUpstream
let second: ScriptedUpstream
const cleanUp = cleaningUp()
before(async () => {
  gateway = await editsGateway(cleanUp)
  ;({ upstream, second } = gateway)
})

/** The parts of a form by their names: their order counts among those of one name only. */
const byName = async (form: FormData) =>
  Object.groupBy(await partsOf(form), (part) => String([part].flat(2)[0]))

describe('an edit of images', () => {
  const openai = () => new OpenAI({ baseURL: `${gateway.served.url}/v1`, apiKey: KEY, maxRetries: 0 })

  it('reaches the line as a form with the files byte for byte, and is charged by the image', async () => {
    upstream.script = answerEdit
    const before = await gateway.spent()
    const { data, response } = await openai()
      .images.edit({
        model: 'pictures',
        prompt: 'put "hats" on\r\nthem: ü',
        image: [await png(CAT, 'cat "1".png'), await png(DOG, 'döggy.png')],
        mask: await png(MASK, 'mask.png'),
        n: 2,
        size: '1024x1024',
        quality: 'low',
        input_fidelity: 'high',
        output_format: 'webp',
        output_compression: 80,
        user: 'someone',
      })
      .withResponse()
    assert.equal(data.data?.length, 2)
    assert.equal(last(upstream).path, PATH)
    assert.equal(last(upstream).headers.authorization, undefined)
    const parts = new Map((await partsOf(await lastForm(upstream))).map((part) => [String(part), part]))
    assert.deepEqual(
      [...parts.values()].sort(),
      [
        ['model', 'up-1'],
        ['prompt', 'put "hats" on\r\nthem: ü'],
        ['image[]', 'cat "1".png', 'image/png', CAT.toString('hex')],
        ['image[]', 'döggy.png', 'image/png', DOG.toString('hex')],
        ['mask', 'mask.png', 'image/png', MASK.toString('hex')],
        ['n', '2'],
        ['size', '1024x1024'],
        ['quality', 'low'],
        ['input_fidelity', 'high'],
        ['output_format', 'webp'],
        ['output_compression', '80'],
        ['user', 'someone'],
      ].sort(),
    )
    const { usage, billing, request } = await gateway.served.entryOf(response)
    assert.deepEqual([usage?.images, billing?.charged, request?.images], [2, '0.08', 3])
    assert.ok((request?.estimated_input_tokens ?? 0) > 3 * 1200)
    assert.equal((await gateway.spent()) - before, 0.08)
    assert.equal(await gateway.spent(OTHER_KEY), 0)
  })

  it('is streamed, and its events are relayed and metered', async () => {
    upstream.script = (res) => stream(res, [PARTIAL, COMPLETED])
    const { data, response } = await openai()
      .images.edit({
        model: 'pictures',
        prompt: 'a hat',
        image: await png(CAT, 'cat.png'),
        stream: true,
        partial_images: 1,
      })
      .withResponse()
    const types: string[] = []
    for await (const { type } of data) types.push(type)
    assert.deepEqual(types, ['image_edit.partial_image', 'image_edit.completed'])
    const sent = await lastForm(upstream)
    assert.deepEqual([sent.get('stream'), sent.get('partial_images')], ['true', '1'])
    assert.equal(last(upstream).headers.accept, 'text/event-stream')
    const { usage, billing, stream: streamed } = await gateway.served.entryOf(response)
    assert.deepEqual([usage?.images, billing?.charged, streamed], [1, '0.04', true])
  })

  it('is charged for the image if the caller leaves after a partial image', async () => {
    upstream.script = (res) => stream(res, [PARTIAL], { end: false })
    const response = await gateway.post(catForm({ stream: 'true' }))
    const reader = response.body?.getReader()
    let text = ''
    while (!text.includes('\n\n')) text += Buffer.from((await reader?.read())?.value ?? []).toString()
    await reader?.cancel()
    const { outcome, billing } = await gateway.served.entryOf(response)
    assert.deepEqual([outcome, billing?.charged], ['interrupted', '0.04'])
  })

  it('is sent to the next line with the same form after a 503, and charged once', async () => {
    upstream.script = (res) => answerJson(res, 503, { error: { message: 'busy' } })
    const response = await gateway.post(catForm({ quality: 'low' }))
    assert.equal(response.status, 200)
    const [first, next] = await Promise.all([upstream, second].map(lastForm))
    assert.deepEqual([first?.get('model'), next?.get('model')], ['up-1', 'up-2'])
    for (const sent of [first, next]) sent?.delete('model')
    assert.deepEqual(await partsOf(next as FormData), await partsOf(first as FormData))
    const { billing, routing } = await gateway.served.entryOf(response)
    assert.deepEqual([billing?.charged, routing?.attempts.length], ['0.04', 2])
  })

  it('keeps any fields and files unchanged', async () => {
    upstream.script = answerEdit
    // A field whose name ends in an id names something that is stored.
    const name = fc.stringMatching(/^[a-z][a-z\d.-]{2,20}$/).filter((one) => !/__|ids?$/.test(one))
    const text = fc.string({ unit: 'grapheme' })
    await fc.assert(
      fc.asyncProperty(
        fc.dictionary(name, text, { maxKeys: 5 }),
        fc.array(fc.tuple(fc.uint8Array({ maxLength: 300 }), name), { minLength: 1, maxLength: 3 }),
        async (fields, files) => {
          const further = Object.fromEntries(
            Object.entries(fields).map(([key, value]) => [`x-${key}`, value]),
          )
          const sent = formWith({
            model: 'pictures',
            prompt: 'a hat',
            'image[]': files.map(([bytes, filename]) => new File([bytes], filename, { type: 'image/png' })),
            ...further,
          })
          const response = await gateway.post(sent)
          assert.equal(response.status, 200, await response.text())
          sent.set('model', 'up-1')
          // A form on the wire has CRLF for each line end of a field.
          const wire = await new Response(sent).formData()
          assert.deepEqual(await byName(await lastForm(upstream)), await byName(wire))
        },
      ),
      { numRuns: 30 },
    )
  })

  it('has the members that a line adds, and lacks those that it removes', async () => {
    const response = await gateway.post(catForm({ model: 'adorned', user: 'someone', moderation: 'auto' }))
    assert.equal(response.status, 200)
    const sent = await lastForm(second)
    assert.deepEqual([sent.get('moderation'), sent.get('user'), sent.get('model')], ['low', null, 'up-a'])
  })

  it('is sent without members for the gateway', async () => {
    upstream.script = answerEdit
    const response = await gateway.post(catForm({ 'provider[only][]': 'p' }))
    assert.equal(response.status, 200)
    assert.deepEqual(
      [...(await lastForm(upstream)).keys()].filter((name) => name.startsWith('provider')),
      [],
    )
  })

  it("is served to Azure's client, whose path names the model", async () => {
    upstream.script = answerEdit
    const azure = new AzureOpenAI({
      endpoint: gateway.served.url,
      apiKey: KEY,
      apiVersion: '2025-04-01',
      maxRetries: 0,
    })
    const { data } = await azure.images.edit({
      model: 'pictures',
      prompt: 'a hat',
      image: await png(CAT, 'cat.png'),
    })
    assert.equal(data?.length, 1)
    const unnamed = catForm()
    unnamed.delete('model')
    const response = await fetch(`${gateway.served.url}/openai/deployments/pictures/images/edits`, {
      method: 'POST',
      body: unnamed,
      headers: { 'api-key': KEY },
    })
    assert.equal(response.status, 200)
    assert.equal((await lastForm(upstream)).get('model'), 'up-1')
    assert.equal(last(upstream).path, PATH)
  })

  it('with the same key is the same request if its fields and files are, with any boundary', async () => {
    upstream.script = answerEdit
    const key = { 'idempotency-key': 'edit-1' }
    assert.equal((await gateway.post(catForm(), key)).status, 200)
    const asked = upstream.requests.length
    assert.equal(
      (await envelopeOf(await gateway.post(catForm(), key))).error.code,
      'idempotency_key_replayed',
    )
    const other = Buffer.from(CAT)
    other[3] = 0x41
    for (const changed of [catForm({}, other), catForm({ quality: 'low' })])
      assert.equal((await envelopeOf(await gateway.post(changed, key))).error.code, 'idempotency_key_reused')
    assert.equal(upstream.requests.length, asked)
  })

  it('may be JSON, whose bytes are not changed', async () => {
    upstream.script = answerEdit
    const images = [{ image_url: 'https://a.test/cat.png' }, { image_url: 'data:image/png;base64,AAAA' }]
    const response = await gateway.served.send(PATH, {
      model: 'pictures',
      prompt: 'a hat',
      images,
      background: 'auto',
    })
    assert.equal(response.status, 200)
    assert.deepEqual(last(upstream).json, { model: 'up-1', prompt: 'a hat', images, background: 'auto' })
    assert.equal(last(upstream).headers['content-type'], 'application/json')
    assert.equal((await gateway.served.entryOf(response)).request?.images, 2)
  })

  it('that is refused upstream is reported without its prompt, and without reading its files', async () => {
    upstream.script = (res) =>
      answerJson(res, 400, {
        error: {
          code: 'bad',
          param: 'mask',
          message: 'invalid mask for the prompt: purple elephants dancing',
        },
      })
    const response = await gateway.post(catForm({ prompt: 'purple elephants dancing' }, DOG))
    assert.equal(response.status, 400)
    const { routing } = await gateway.served.entryOf(response)
    const told = JSON.stringify(routing?.attempts)
    assert.match(told, /invalid mask/)
    assert.doesNotMatch(told, /purple|elephants|dancing/)
  })
})
