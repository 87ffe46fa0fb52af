import assert from 'node:assert/strict'
import { it } from 'node:test'
import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { KEY } from '../../support/gateway.ts'
import { KeptFiles } from '../../support/kept-files.ts'

it('the official SDKs page through all files of an account, over two lines', async (t) => {
  const files = await new KeptFiles().start(t)
  const own: string[] = []
  for (let i = 0; i < 50; i++) {
    own.unshift(await files.make('acme', i % 3 === 0 ? 0 : 1, { purpose: i % 5 === 0 ? 'batch' : 'vision' }))
    await files.make('globex', i % 2 === 0 ? 0 : 1)
  }
  const openai = new OpenAI({ baseURL: `${files.gateway.url}/v1`, apiKey: KEY, maxRetries: 0 })
  const anthropic = new Anthropic({ baseURL: files.gateway.url, apiKey: KEY, maxRetries: 0 })
  const idsOf = async (things: AsyncIterable<{ id: string }>): Promise<string[]> => {
    const ids: string[] = []
    for await (const { id } of things) ids.push(id)
    return ids
  }
  assert.deepEqual(await idsOf(openai.files.list()), own)
  assert.deepEqual(await idsOf(openai.files.list({ limit: 7, order: 'asc' })), own.toReversed())
  const batches = await idsOf(openai.files.list({ limit: 3, purpose: 'batch' }))
  assert.equal(batches.length, 10)
  assert.deepEqual(await idsOf(anthropic.beta.files.list({ limit: 9 })), own)
})
