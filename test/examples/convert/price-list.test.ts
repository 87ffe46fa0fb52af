import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { convertPriceList } from '../../../examples/gateway/convert/litellm/price-list.ts'
import { loadConfig } from '../../support/any-config.ts'
import { notesOn } from './converted.ts'

const LIST = {
  sample_spec: { mode: 'one of chat, embedding', input_cost_per_token: 0 },
  'gpt-4o-mini': {
    litellm_provider: 'openai',
    mode: 'chat',
    max_tokens: 16_384,
    max_input_tokens: 128_000,
    max_output_tokens: 16_384,
    input_cost_per_token: 1.5e-7,
    output_cost_per_token: 6e-7,
    cache_read_input_token_cost: 7.5e-8,
    supports_vision: true,
    supports_function_calling: true,
  },
  'gemini/gemini-pro': {
    mode: 'chat',
    input_cost_per_token: 1.25e-6,
    input_cost_per_token_above_200k_tokens: 2.5e-6,
    output_cost_per_token: 1e-5,
    output_cost_per_token_above_200k_tokens: 1.5e-5,
    cache_creation_input_token_cost: 1.5625e-6,
    input_cost_per_character: 3e-7,
    supports_function_calling: false,
  },
  'text-embedding-3-small': { mode: 'embedding', max_input_tokens: 8191, input_cost_per_token: 2e-8 },
  'dall-e-3': { mode: 'image_generation', output_cost_per_image: 0.04 },
  'local/free': { mode: 'chat', input_cost_per_token: null },
  'whisper-1': { mode: 'audio_transcription', input_cost_per_second: 0.0001 },
  'tts-1': { mode: 'audio_speech' },
  'tts-2': { mode: 'audio_speech' },
  'odd name': { mode: 'chat' },
  'openrouter/*': { mode: 'chat' },
  broken: 1,
}

describe('a price list of LiteLLM', () => {
  const { models, notes } = convertPriceList(LIST)
  const converted = JSON.parse(JSON.stringify(models)) as { id: string }[]

  test('becomes models with exact prices', () => {
    assert.deepEqual(converted, [
      {
        id: 'gpt-4o-mini',
        kind: 'chat',
        contextWindow: 144_384,
        maxOutputTokens: 16_384,
        price: { inputPerMillion: '0.15', outputPerMillion: '0.6', cachedInputPerMillion: '0.075' },
      },
      {
        id: 'gemini/gemini-pro',
        kind: 'chat',
        features: ['stream', 'vision', 'json', 'reasoning'],
        price: {
          inputPerMillion: '1.25',
          outputPerMillion: '10',
          cacheWritePerMillion: '1.5625',
          tiers: [{ aboveInputTokens: 200_000, inputPerMillion: '2.5', outputPerMillion: '15' }],
        },
      },
      {
        id: 'text-embedding-3-small',
        kind: 'embedding',
        contextWindow: 8191,
        price: { inputPerMillion: '0.02' },
      },
      { id: 'dall-e-3', kind: 'image', price: { perImage: '0.04' } },
      { id: 'local/free', kind: 'chat' },
    ])
  })

  test('is valid in a config', () => {
    const line = { id: 'l', provider: 'p', protocol: 'openai', baseUrl: 'http://u/v1' }
    const names = Object.fromEntries(converted.map(({ id }) => [id, id]))
    const { catalog } = loadConfig({ models: converted, lines: [{ ...line, models: names }] })
    assert.equal(catalog.models.size, converted.length)
  })

  test('names what is left out, each reason once', () => {
    assert.deepEqual(notesOn(notes, 'mode audio_speech'), ['has no counterpart here: tts-1, tts-2'])
    assert.match(notesOn(notes, 'mode audio_transcription').join(), /whisper-1/)
    assert.match(notesOn(notes, 'input_cost_per_character').join(), /gemini\/gemini-pro/)
    assert.match(notesOn(notes, 'no price').join(), /local\/free/)
    for (const name of ['odd name', 'openrouter/*', 'broken'])
      assert.equal(notesOn(notes, name).length, 1, name)
    assert.equal(notes.length, 7)
    assert.doesNotMatch(notes.join(), /sample_spec/)
  })
})
