import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { stringify } from 'yaml'
import { convert } from './converted.ts'

const PREFIXES = ['openai/', 'azure/', 'anthropic/', 'groq/', 'cohere/', 'ollama/', 'bedrock/', 'gemini/', '']
const word = fc.stringMatching(/^[a-z0-9 .:*/-]{1,12}$/)
const model = fc.constantFrom('a', 'b', 'c', 'openai/gpt', 'G P T', 'x*')
const anything = fc.anything({ withBigInt: false, withDate: false, withNullPrototype: false })
const scalar = fc.oneof(
  fc.double(),
  fc.integer(),
  fc.boolean(),
  fc.string(),
  fc.constant(null),
  fc.constant('os.environ/SOME'),
)
const price = fc.oneof(fc.double({ min: 0, max: 1e-3, noNaN: true }), scalar)

const deployment = fc.record(
  {
    model_name: fc.oneof({ weight: 8, arbitrary: model }, { weight: 1, arbitrary: anything }),
    litellm_params: fc.record(
      {
        model: fc.tuple(fc.constantFrom(...PREFIXES), word).map((parts) => parts.join('')),
        api_base: fc.oneof(fc.webUrl({ withQueryParameters: true }), scalar),
        api_key: scalar,
        weight: scalar,
        rpm: scalar,
        order: scalar,
        timeout: scalar,
        stream_timeout: scalar,
        cooldown_time: scalar,
        max_tokens: scalar,
        region_name: scalar,
        input_cost_per_token: price,
        extra_headers: fc.dictionary(fc.string(), scalar),
      },
      { requiredKeys: ['model'] },
    ),
    model_info: fc.record(
      {
        id: fc.oneof(fc.constant('mine'), scalar),
        mode: fc.oneof(fc.constantFrom('chat', 'embedding', 'rerank', 'completion'), scalar),
        max_input_tokens: scalar,
        max_output_tokens: scalar,
        supports_vision: scalar,
        output_cost_per_token: price,
        cache_read_input_token_cost: price,
      },
      { requiredKeys: [] },
    ),
  },
  { requiredKeys: ['litellm_params'] },
)

const file = fc.record(
  {
    model_list: fc.array(fc.oneof({ weight: 9, arbitrary: deployment }, { weight: 1, arbitrary: anything }), {
      maxLength: 6,
    }),
    router_settings: fc.record(
      {
        routing_strategy: fc.oneof(fc.constantFrom('latency-based-routing', 'least-busy'), scalar),
        fallbacks: fc.array(fc.dictionary(fc.oneof(model, fc.constant('*')), fc.array(model))),
        model_group_alias: fc.dictionary(fc.oneof(word, model), model),
        num_retries: scalar,
        allowed_fails: scalar,
        timeout: scalar,
      },
      { requiredKeys: [] },
    ),
    litellm_settings: fc.record(
      { default_fallbacks: fc.oneof(fc.array(model), scalar), request_timeout: scalar },
      { requiredKeys: [] },
    ),
    general_settings: fc.record(
      { master_key: scalar, allowed_ips: fc.oneof(fc.array(fc.ipV4()), scalar), max_request_size_mb: scalar },
      { requiredKeys: [] },
    ),
    environment_variables: fc.dictionary(fc.constantFrom('SOME', 'OTHER'), scalar),
  },
  { requiredKeys: ['model_list'] },
)

describe('any file of LiteLLM', () => {
  test('becomes a config that passes the check of this gateway', () => {
    fc.assert(
      // `convert` runs the check.
      fc.property(file, (content) => {
        // In YAML 1.1 such a member is a merge, which only a mapping can be.
        fc.pre(!JSON.stringify(content).includes('"<<":'))
        convert(stringify(content, { version: '1.1' }))
      }),
      { numRuns: 50 },
    )
  })

  test('loses no member without a word', () => {
    const unknown = fc.stringMatching(/^[a-z_]{1,10}$/).map((name) => `other_${name}`)
    fc.assert(
      fc.property(unknown, (name) => {
        const { notes } = convert(`model_list:
  - { model_name: a, ${name}: 1, litellm_params: { model: openai/x, ${name}: 1 }, model_info: { ${name}: 1, also: 1 } }
router_settings: { ${name}: 1 }
litellm_settings: { ${name}: 1 }
general_settings: { ${name}: 1 }
${name}: 1`)
        for (const path of [
          'model_list[0].',
          'model_list[0].litellm_params.',
          'router_settings.',
          'litellm_settings.',
          'general_settings.',
          '',
        ])
          assert.equal(notes.filter((note) => note.startsWith(`${path}${name}: `)).length, 1, path)
        assert.ok(notes.includes(`model_list[0].model_info: has no counterpart here: ${name}, also`))
      }),
    )
  })
})
