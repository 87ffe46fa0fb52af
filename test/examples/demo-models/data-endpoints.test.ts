import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { inflateSync } from 'node:zlib'
import type OpenAI from 'openai'
import { type DemoModels, startDemoModels } from '../../../examples/gateway/demo-models/server.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import { drain, openaiFor } from './clients.ts'

let demo: DemoModels
let openai: OpenAI
const cleanUp = cleaningUp()
before(async () => {
  demo = await startDemoModels({ paceMs: 0, slowMs: 20 })
  cleanUp.after(() => demo.close())
  openai = openaiFor(demo.url)
})

const similarity = (a: readonly number[], b: readonly number[]) =>
  a.reduce((sum, value, i) => sum + value * (b[i] ?? 0), 0)

describe('embeddings', () => {
  it('of texts that share words are alike, and the same in either encoding', async () => {
    const input = ['a red apple', 'a green apple', 'quarterly report']
    const [base64, floats] = await Promise.all([
      openai.embeddings.create({ model: 'demo-embedding', input }),
      openai.embeddings.create({ model: 'demo-embedding', input, encoding_format: 'float' }),
    ])
    const [red = [], green = [], report = []] = base64.data.map(({ embedding }) => embedding)
    assert.equal(red.length, 256)
    assert.ok(Math.abs(similarity(red, red) - 1) < 1e-3)
    assert.ok(similarity(red, green) > 0.4 && similarity(red, report) < 0.4)
    assert.deepEqual(floats.data[0]?.embedding, red)
    assert.ok(base64.usage.prompt_tokens > 0)
  })

  it('take tokens and a number of dimensions', async () => {
    const { data } = await openai.embeddings.create({
      model: 'demo-embedding',
      input: [[1, 2], [3]],
      dimensions: 8,
    })
    assert.deepEqual(
      data.map(({ embedding }) => embedding.length),
      [8, 8],
    )
  })
})

describe('pictures', () => {
  it('are PNG of the given size, as many as asked for', async () => {
    const {
      data = [],
      size,
      usage,
    } = await openai.images.generate({ model: 'demo-image', prompt: 'waves', n: 2 })
    assert.equal(data.length, 2)
    assert.equal(usage?.output_tokens, 544)
    const png = Buffer.from(data[0]?.b64_json ?? '', 'base64')
    assert.equal(png.toString('latin1', 1, 4), 'PNG')
    assert.equal(size, `${png.readUInt32BE(16)}x${png.readUInt32BE(20)}`)
    const pixels = inflateSync(png.subarray(png.indexOf('IDAT') + 4, png.indexOf('IEND') - 8))
    assert.equal(pixels.length, 256 * 257)
    assert.notEqual(data[0]?.b64_json, data[1]?.b64_json)
  })

  it('have an address where that is asked for', async () => {
    const { data } = await openai.images.generate({
      model: 'demo-image',
      prompt: 'a',
      response_format: 'url',
    })
    assert.match(data?.[0]?.url ?? '', /^data:image\/png;base64,iVBOR/)
  })
})

describe('rerank', () => {
  it('puts what answers the query first', async () => {
    const response = await fetch(`${demo.url}/v1/rerank`, {
      method: 'POST',
      headers: { authorization: 'Bearer any' },
      body: JSON.stringify({
        model: 'demo-rerank',
        query: 'green apple',
        documents: ['a pear', { text: 'a green apple' }, 'an apple'],
        top_n: 2,
      }),
    })
    const { results, meta } = (await response.json()) as {
      results: { index: number }[]
      meta: { billed_units: object }
    }
    assert.deepEqual(
      results.map(({ index }) => index),
      [1, 2],
    )
    assert.deepEqual(meta.billed_units, { search_units: 1 })
  })
})

describe('completions', () => {
  it('say the same plain and streamed', async () => {
    const asked = { model: 'demo-chat', prompt: ['How are you?', 'And you?'], max_tokens: 40 }
    const plain = await openai.completions.create(asked)
    const { items } = await drain(await openai.completions.create({ ...asked, stream: true }))
    const said = ['', '']
    for (const { choices } of items) for (const { index, text } of choices) said[index] += text
    assert.deepEqual(
      plain.choices.map(({ text }) => text),
      said,
    )
    assert.equal(plain.usage?.completion_tokens, 80)
    assert.equal(plain.choices[0]?.finish_reason, 'length')
  })
})

describe('the situations', () => {
  it('are those of every endpoint', async () => {
    const input = { input: 'a' }
    await assert.rejects(openai.embeddings.create({ model: 'demo-failing', ...input }), { status: 500 })
    await assert.rejects(openai.images.generate({ model: 'demo-rate-limited', prompt: 'a' }), { status: 429 })
    await assert.rejects(openai.embeddings.create({ model: 'demo-cut', ...input }))
    assert.deepEqual((await openai.images.generate({ model: 'demo-empty', prompt: 'a' })).data, [])
    assert.equal((await openai.embeddings.create({ model: 'demo-slow', ...input })).data.length, 1)
  })

  it('a body that the real API would refuse is refused', async () => {
    for (const [path, body, param] of [
      ['embeddings', { model: 'demo-embedding' }, 'input'],
      ['embeddings', { model: 'demo-embedding', input: [{}] }, 'input'],
      ['images/generations', { model: 'demo-image' }, 'prompt'],
      ['rerank', { model: 'demo-rerank', query: 'a', documents: [] }, 'documents'],
      ['completions', { model: 'demo-chat' }, 'prompt'],
      ['embeddings', { input: 'a' }, 'model'],
    ] as const) {
      const response = await fetch(`${demo.url}/v1/${path}`, {
        method: 'POST',
        headers: { authorization: 'Bearer any' },
        body: JSON.stringify(body),
      })
      assert.equal(response.status, 400)
      assert.equal(((await response.json()) as { error: { param: string } }).error.param, param)
    }
  })
})
