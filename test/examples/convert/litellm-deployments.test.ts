import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { convert, convertOne, notesOn } from './converted.ts'

describe('a deployment of LiteLLM as a line', () => {
  /** Each row: what the deployment says, and the address, key and model of its line. */
  const REACHED = `
    { model: openai/gpt-4o-mini } -> https://api.openai.com/v1 -> env:OPENAI_API_KEY -> gpt-4o-mini
    { model: gpt-4o-mini } -> https://api.openai.com/v1 -> env:OPENAI_API_KEY -> gpt-4o-mini
    { model: x, custom_llm_provider: openai, api_key: k, api_base: "http://h:1/p/" } -> http://h:1/p -> k -> x
    { model: openai/meta/llama, api_key: none, api_base: "http://h/v1" } -> http://h/v1 -> none -> meta/llama
    { model: claude-sonnet-4-5 } -> https://api.anthropic.com/v1 -> env:ANTHROPIC_API_KEY -> claude-sonnet-4-5
    { model: anthropic/c, api_key: k, api_base: "https://h/v1/messages" } -> https://h/v1 -> k -> c
    { model: anthropic/c, api_key: k, api_base: "https://h" } -> https://h/v1 -> k -> c
    { model: azure/eu, api_key: os.environ/AZ, api_base: "https://r.openai.azure.com/" } -> https://r.openai.azure.com/openai/v1 -> env:AZ -> eu
    { model: azure/eu, api_base: "https://r.openai.azure.com/openai/deployments/eu/chat?api-version=1" } -> https://r.openai.azure.com/openai/v1 -> env:AZURE_API_KEY -> eu
    { model: gemini/gemini-2.0-flash } -> https://generativelanguage.googleapis.com/v1beta/openai -> env:GEMINI_API_KEY -> gemini-2.0-flash
    { model: mistral/m } -> https://api.mistral.ai/v1 -> env:MISTRAL_API_KEY -> m
    { model: groq/llama } -> https://api.groq.com/openai/v1 -> env:GROQ_API_KEY -> llama
    { model: together_ai/a/b } -> https://api.together.xyz/v1 -> env:TOGETHERAI_API_KEY -> a/b
    { model: deepseek/deepseek-chat } -> https://api.deepseek.com/v1 -> env:DEEPSEEK_API_KEY -> deepseek-chat
    { model: openrouter/a/b:free } -> https://openrouter.ai/api/v1 -> env:OPENROUTER_API_KEY -> a/b:free
    { model: xai/grok } -> https://api.x.ai/v1 -> env:XAI_API_KEY -> grok
    { model: cohere/command-r } -> https://api.cohere.ai/compatibility/v1 -> env:COHERE_API_KEY -> command-r
    { model: cohere/rerank-v3.5 } -> https://api.cohere.com/v2 -> env:COHERE_API_KEY -> rerank-v3.5
    { model: ollama/llama3 } -> http://localhost:11434/v1 -> no key -> llama3
    { model: ollama_chat/llama3, api_base: "http://o:11434" } -> http://o:11434/v1 -> no key -> llama3
    { model: hosted_vllm/a/b, api_base: "http://v:8000/v1" } -> http://v:8000/v1 -> no key -> a/b
    { model: fireworks_ai/glm } -> https://api.fireworks.ai/inference/v1 -> env:FIREWORKS_API_KEY -> accounts/fireworks/models/glm`
  for (const row of REACHED.trim().split('\n')) {
    const [params = '', baseUrl, apiKey, model] = row.trim().split(' -> ')
    test(`${params} is at ${baseUrl}`, () => {
      const { line } = convertOne(params)
      assert.deepEqual([line?.baseUrl, line?.apiKey ?? 'no key', line?.models.chat], [baseUrl, apiKey, model])
      const isAnthropic = /claude|anthropic/.test(params)
      assert.equal(line?.protocol, isAnthropic ? 'anthropic' : 'openai')
    })
  }

  const LEFT_OUT: readonly [params: string, member: string, why: RegExp][] = [
    ['{ model: bedrock/anthropic.claude-v2, aws_region_name: us-east-1 }', 'model', /bedrock\.json/],
    ['{ model: vertex_ai/gemini-pro, vertex_project: p }', 'model', /vertex\.json/],
    ['{ model: gemini-pro }', 'model', /vertex_ai.*vertex\.json/],
    ['{ model: sagemaker/x }', 'model', /small service/],
    ['{ model: replicate/x }', 'model', /replicate.*OpenAI-style endpoint/],
    ['{ model: my-own-model }', 'model', /names no provider/],
    ['{ model: openai/* }', 'model', /model_name does not have/],
    ['{ model: openai/*/* }', 'model', /one "\*" at most/],
    [
      '{ model: os.environ/NOWHERE }',
      'model',
      /^the variable NOWHERE is not set; the deployment is left out/,
    ],
    ['{ model: hosted_vllm/x }', 'api_base', /is needed/],
    ['{ model: openai/x, api_base: os.environ/NOWHERE }', 'api_base', /NOWHERE is not set.*convert again/],
    ['{ model: openai/x, api_base: "<your base>" }', 'api_base', /no http\(s\) URL/],
    ['{ model: openai/x, api_base: "https://h/v1?version=1" }', 'api_base', /query/],
    ['{ model: gemini/x, api_base: "https://h" }', 'api_base', /own protocol/],
    ['{ model: openai/x, mock_response: hello }', 'mock_response', /real upstreams/],
    ['{ api_key: k }', 'model', /is needed/],
  ]
  for (const [params, member, why] of LEFT_OUT)
    test(`${params} is left out, which is reported`, () => {
      const { line, notes } = convertOne(params)
      assert.equal(line, undefined)
      assert.match(notesOn(notes, `model_list[0].litellm_params.${member}`).join(), why)
    })

  test('adds to each request, and takes from it, what LiteLLM does', () => {
    const { line, notes } = convertOne(
      '{ model: openai/x, extra_body: { top_k: 5, chat: { a: [1] } }, additional_drop_params: [user, "tools[*].strict"] }',
    )
    assert.deepEqual(line?.body, { top_k: 5, chat: { a: [1] }, user: null })
    assert.deepEqual(notesOn(notes, 'model_list[0].litellm_params.extra_body'), [])
    assert.match(notesOn(notes, 'model_list[0].litellm_params.additional_drop_params').join(), /^tools/)
    assert.equal(convertOne('{ model: openai/x, extra_body: {} }').line?.body, undefined)
  })

  test('an address comes from the file’s own variables before those of the process', () => {
    const { config } = convert(
      `environment_variables: { BASE: "https://of-the-file/v1" }
model_list: [{ model_name: chat, litellm_params: { model: openai/x, api_base: os.environ/BASE } }]`,
      { BASE: 'https://of-the-process/v1' },
    )
    assert.equal(config.lines[0]?.baseUrl, 'https://of-the-file/v1')
    const { line } = convertOne('{ model: hosted_vllm/x }', '{}', { HOSTED_VLLM_API_BASE: 'http://v/v1' })
    assert.equal(line?.baseUrl, 'http://v/v1')
  })

  test('a named credential gives what the deployment does not say itself', () => {
    const { config, notes } = convert(`
credential_list: [{ credential_name: mine, credential_values: { api_key: os.environ/MINE, api_base: "https://h/v1" } }]
model_list:
  - { model_name: a, litellm_params: { model: openai/x, litellm_credential_name: mine } }
  - { model_name: b, litellm_params: { model: openai/x, api_key: own, litellm_credential_name: mine } }
  - { model_name: c, litellm_params: { model: openai/x, litellm_credential_name: nobody } }`)
    assert.deepEqual(
      config.lines.map(({ apiKey, baseUrl }) => [apiKey, baseUrl]),
      [
        ['env:MINE', 'https://h/v1'],
        ['own', 'https://h/v1'],
        ['env:OPENAI_API_KEY', 'https://api.openai.com/v1'],
      ],
    )
    assert.equal(notesOn(notes, 'model_list[2].litellm_params.litellm_credential_name').length, 1)
  })

  test('headers are carried over, and those that no line can set are reported', () => {
    const { line, notes } = convertOne(
      '{ model: openai/x, organization: org-1, extra_headers: { x-team: os.environ/TEAM, "a b": c, Connection: close } }',
    )
    assert.deepEqual(line?.headers, { 'x-team': 'env:TEAM', 'OpenAI-Organization': 'org-1' })
    for (const name of ['a b', 'Connection'])
      assert.equal(notesOn(notes, `model_list[0].litellm_params.extra_headers.${name}`).length, 1)
  })

  test('a timeout is for the call, a stream’s for its first byte', () => {
    assert.deepEqual(convertOne('{ model: openai/x, timeout: 300, stream_timeout: "30" }').line?.timeouts, {
      firstByteMs: 30_000,
      totalMs: 300_000,
    })
    assert.deepEqual(convertOne('{ model: openai/x, timeout: 90 }').line?.timeouts, {
      firstByteMs: 90_000,
      totalMs: 90_000,
    })
    const { line, notes } = convertOne('{ model: openai/x, timeout: 1000000 }')
    assert.equal(line?.timeouts, undefined)
    assert.match(notesOn(notes, 'model_list[0].litellm_params.timeout').join(), /day/)
  })

  const KINDS: readonly [model: string, info: string, kind: string, endpoint: string, isGuess: boolean][] = [
    ['groq/llama', '{}', 'chat', 'chat/completions', false],
    ['groq/llama', '{ mode: completion }', 'chat', 'completions', false],
    ['xai/grok', '{ mode: responses }', 'chat', 'responses', false],
    ['mistral/mistral-embed', '{}', 'embedding', 'embeddings', true],
    ['jina_ai/jina-reranker-v2', '{ mode: rerank }', 'rerank', 'rerank', false],
    ['together_ai/black-forest-labs/FLUX.1-schnell', '{}', 'image', 'images/generations', true],
    ['xai/grok', '{ mode: video_generation }', 'video', 'videos', false],
    ['groq/mine', '{ base_model: text-embedding-3-small }', 'embedding', 'embeddings', true],
  ]
  for (const [name, info, kind, endpoint, isGuess] of KINDS)
    test(`${name} ${info} is ${kind}${isGuess ? ', and the guess is reported' : ''}`, () => {
      const { model, line, notes } = convertOne(`{ model: ${name} }`, info)
      assert.deepEqual([model?.kind, line?.endpoints], [kind, [endpoint]])
      assert.equal(
        /taken from the name/.test(notesOn(notes, 'model_list[0].model_info.mode').join()),
        isGuess,
      )
    })

  test('a route of LiteLLM is no part of the name, and Responses are reported', () => {
    const address = 'api_base: "https://r.openai.azure.com"'
    const { line, notes } = convertOne(`{ model: azure/responses/eu-o3, ${address} }`)
    assert.deepEqual([line?.models.chat, line?.endpoints], ['eu-o3', ['responses']])
    assert.match(notesOn(notes, 'model_list[0].model_info.mode').join(), /callers use \/v1\/responses/)
    const series = convertOne(`{ model: azure/o_series/eu, ${address} }`)
    assert.deepEqual([series.line?.models.chat, series.line?.endpoints], ['eu', ['chat/completions']])
  })

  test('a deployment that cannot become a model is left out, with the way around', () => {
    for (const [name, info] of [
      ['openai/whisper-1', '{}'],
      ['openai/tts-1', '{}'],
      ['openai/x', '{ mode: audio_speech }'],
    ] as const) {
      const { line, notes } = convertOne(`{ model: ${name} }`, info)
      assert.equal(line, undefined)
      assert.match(notesOn(notes, 'model_list[0].model_info.mode').join(), /passThrough/)
    }
  })

  test('a model says its limits, and only which features it lacks', () => {
    const { model } = convertOne(
      '{ model: openai/x }',
      '{ max_input_tokens: 128000, max_output_tokens: 16384, supports_vision: true, supports_function_calling: false }',
    )
    assert.deepEqual(
      [model?.contextWindow, model?.maxOutputTokens, model?.features],
      [144_384, 16_384, ['stream', 'vision', 'json', 'reasoning']],
    )
    assert.equal(convertOne('{ model: openai/x }', '{ supports_vision: true }').model?.features, undefined)
  })

  test('max_tokens is the maximum of a model, and reported where no request sets it', () => {
    const openai = convertOne('{ model: openai/x, max_tokens: 256 }')
    assert.equal(openai.model?.maxOutputTokens, 256)
    assert.match(notesOn(openai.notes, 'model_list[0].litellm_params.max_tokens').join(), /callers send it/)
    const anthropic = convertOne('{ model: anthropic/x, max_tokens: 256 }')
    assert.equal(anthropic.model?.maxOutputTokens, 256)
    assert.deepEqual(notesOn(anthropic.notes, 'model_list[0].litellm_params.max_tokens'), [])
  })

  test('a name that can be no id is mended or left out, and reported', () => {
    const { config, notes } = convert(`model_list:
  - { model_name: "GPT 4o", litellm_params: { model: openai/a } }
  - { model_name: "模型", litellm_params: { model: openai/b } }
  - { model_name: "*/*", litellm_params: { model: "openai/*" } }
  - { litellm_params: { model: openai/c } }
  - { model_name: d }
  - nothing`)
    assert.deepEqual(
      config.models.map(({ id }) => id),
      ['GPT-4o'],
    )
    for (const [path, text] of [
      ['model_list[0].model_name', /GPT-4o/],
      ['model_list[1].model_name', /ASCII/],
      ['model_list[2].model_name', /one "\*" only/],
      ['model_list[3].model_name', /needed/],
      ['model_list[4].litellm_params', /needed/],
      ['model_list[5]', /no mapping/],
    ] as const)
      assert.match(notesOn(notes, path).join(), text)
  })

  test('with a wildcard are patterns', () => {
    const { config, notes } = convert(`model_list:
  - { model_name: "openai/*", litellm_params: { model: "openai/*" } }
  - { model_name: "gpt-*", litellm_params: { model: "openai/gpt-*" } }
  - { model_name: "one", litellm_params: { model: "openai/*" } }`)
    assert.deepEqual(
      config.lines.map(({ models }) => models),
      [{ 'openai/*': '$1', 'gpt-*': 'gpt-*' }],
    )
    assert.match(notesOn(notes, 'model_list[2].litellm_params.model').join(), /model_name does not have/)
  })
})
