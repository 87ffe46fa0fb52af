import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type Config, convert, notesOn } from './converted.ts'

describe('several deployments of LiteLLM', () => {
  test('with one address and key are one line', () => {
    const { config, from } = convert(`model_list:
  - { model_name: a, litellm_params: { model: openai/x } }
  - { model_name: b, litellm_params: { model: openai/y } }
  - { model_name: c, litellm_params: { model: openai/z, api_key: other } }`)
    assert.deepEqual(
      config.lines.map(({ id, models }) => [id, models]),
      [
        ['openai', { a: 'x', b: 'y' }],
        ['openai-2', { c: 'z' }],
      ],
    )
    assert.deepEqual(from, [['model_list[0]', 'model_list[1]'], ['model_list[2]']])
  })

  test('of one model are lines of it, which share its calls as LiteLLM does', () => {
    const of = (members: string[]): unknown[] =>
      convert(
        `model_list: [${members.map((more, i) => `{ model_name: a, litellm_params: { model: openai/x, api_key: k${i}, ${more} } }`)}]`,
      ).config.lines.map(({ weight }) => weight)
    assert.deepEqual(of(['', '']), [undefined, undefined])
    assert.deepEqual(of(['weight: 9, rpm: 1', 'weight: 1, rpm: 9']), [9, undefined])
    assert.equal(
      of(['rpm: 109661477', 'rpm: 1'])[0],
      1_000_000,
      'the largest, whatever its product is rounded to',
    )
    assert.deepEqual(of(['rpm: 900, tpm: 1', 'rpm: 10, tpm: 2']), [900, 10])
    assert.deepEqual(of(['rpm: 6', '']), [6, 0])
    assert.deepEqual(of(['tpm: 4000000', 'tpm: 1000000']), [1_000_000, 250_000])
  })

  test('a line that shares calls also serves a model that has no other, unless it comes last', () => {
    const { config } = convert(`model_list:
  - { model_name: a, litellm_params: { model: openai/x, api_key: one, rpm: 60 } }
  - { model_name: a, litellm_params: { model: openai/x, api_key: two } }
  - { model_name: b, litellm_params: { model: openai/x, api_key: one } }
  - { model_name: c, litellm_params: { model: openai/x, api_key: two } }`)
    assert.deepEqual(
      config.lines.map(({ weight, models }) => [weight, Object.keys(models)]),
      [
        [60, ['a', 'b']],
        [0, ['a']],
        [undefined, ['c']],
      ],
    )
  })

  test('a later order comes last', () => {
    const { config } = convert(`model_list:
  - { model_name: a, litellm_params: { model: openai/x, order: 2 } }
  - { model_name: a, litellm_params: { model: groq/x, order: 1 } }
  - { model_name: a, litellm_params: { model: xai/x } }`)
    assert.deepEqual(
      config.lines.map(({ id, priority, weight }) => [id, priority, weight]),
      [
        ['openai', 1, 0],
        ['groq', undefined, undefined],
        ['xai', 2, 0],
      ],
    )
  })

  test('the model has the settings that its deployments share, and each line has those that differ', () => {
    const { config } = convert(`model_list:
  - model_name: a
    litellm_params: { model: openai/x, input_cost_per_token: 1e-6 }
    model_info: { id: mine, max_input_tokens: 1000 }
  - model_name: a
    litellm_params: { model: groq/x, input_cost_per_token: 2e-6 }
    model_info: { max_input_tokens: 1000 }`)
    assert.deepEqual(config.models, [{ id: 'a', kind: 'chat', contextWindow: 1000 }])
    assert.deepEqual(
      config.lines.map(({ id, price }) => [id, price]),
      [
        ['mine', { inputPerMillion: '1' }],
        ['groq', { inputPerMillion: '2' }],
      ],
    )
  })

  test('of another kind than the first are left out', () => {
    const { config, notes } = convert(`model_list:
  - { model_name: a, litellm_params: { model: openai/x } }
  - { model_name: a, litellm_params: { model: groq/x }, model_info: { mode: embedding } }`)
    assert.deepEqual(
      config.lines.map(({ id }) => id),
      ['openai'],
    )
    assert.match(notesOn(notes, 'model_list[1]').join(), /"embedding".*"chat"/)
  })
})

describe('the settings of LiteLLM', () => {
  const MODELS = `model_list:
  - { model_name: a, litellm_params: { model: openai/x, input_cost_per_token: 1e-6, output_cost_per_token: 2e-6 } }
  - { model_name: b, litellm_params: { model: groq/y } }
  - { model_name: c, litellm_params: { model: xai/z, input_cost_per_token: 3e-6 } }
`

  const fallbacksOf = ({ models }: Config): unknown => models.map(({ id, fallbacks }) => [id, fallbacks])

  test('fallbacks are fallback models, and no lines', () => {
    const { config, notes } = convert(`${MODELS}
router_settings: { routing_strategy: latency-based-routing, fallbacks: [{ a: [b, c, b, a] }, { b: c }] }`)
    assert.deepEqual(fallbacksOf(config), [
      ['a', ['b', 'c']],
      ['b', ['c']],
      ['c', undefined],
    ])
    assert.deepEqual(
      config.lines.map(({ id, models }) => [id, models]),
      [
        ['openai', { a: 'x' }],
        ['groq', { b: 'y' }],
        ['xai', { c: 'z' }],
      ],
    )
    assert.deepEqual(config.routing, { strategy: 'latency', maxAttempts: 3 })
    assert.deepEqual(
      notes.filter((note) => note.includes('fallback')),
      [],
    )
  })

  test('default fallbacks are those of each model without others', () => {
    const { config } = convert(`${MODELS}
litellm_settings: { default_fallbacks: [c], fallbacks: [{ a: [b] }] }`)
    assert.deepEqual(fallbacksOf(config), [
      ['a', ['b']],
      ['b', ['c']],
      ['c', undefined],
    ])
  })

  test('models of two kinds, and embeddings, are no fallbacks', () => {
    const { config, notes } = convert(`${MODELS}
  - { model_name: e, litellm_params: { model: openai/x }, model_info: { mode: embedding } }
  - { model_name: f, litellm_params: { model: openai/y }, model_info: { mode: embedding } }
litellm_settings: { fallbacks: [{ a: [e, b] }, { e: [f] }] }`)
    assert.deepEqual(config.models[0]?.fallbacks, ['b'])
    assert.deepEqual(
      config.models.slice(1).flatMap(({ fallbacks }) => fallbacks ?? []),
      [],
    )
    assert.match(notesOn(notes, 'litellm_settings.fallbacks[0].a').join(), /not of one kind/)
    assert.match(notesOn(notes, 'litellm_settings.fallbacks[1].e').join(), /"embedding"/)
  })

  test('an alias is a model on the same lines, with the same fallbacks', () => {
    const { config, notes } = convert(`${MODELS}
router_settings:
  fallbacks: [{ a: [other] }]
  model_group_alias: { again: a, other: { model: b, hidden: true }, lost: nowhere, c: a }`)
    const serving = (model: string): string[] =>
      config.lines.filter(({ models }) => model in models).map(({ id }) => id)
    assert.deepEqual(serving('again'), ['openai'])
    assert.deepEqual(serving('other'), ['groq'])
    assert.deepEqual(serving('c'), ['xai'])
    const again = config.models.find(({ id }) => id === 'again')
    assert.deepEqual(again?.price, { inputPerMillion: '1', outputPerMillion: '2' })
    assert.deepEqual(again?.fallbacks, ['b'])
    for (const name of ['lost', 'c', 'other.hidden'])
      assert.equal(notesOn(notes, `router_settings.model_group_alias.${name}`).length, 1, name)
  })

  const STRATEGIES: readonly [settings: string, strategy: string, isTold: boolean][] = [
    ['{}', 'weighted', false],
    ['{ routing_strategy: simple-shuffle }', 'weighted', false],
    ['{ routing_strategy: latency-based-routing }', 'latency', false],
    ['{ routing_strategy: cost-based-routing }', 'price', false],
    ['{ routing_strategy: least-busy }', 'weighted', true],
    ['{ routing_strategy: usage-based-routing-v2 }', 'weighted', true],
    ['{ routing_strategy: latency-based-routing, fallbacks: [{ a: [b] }] }', 'latency', false],
  ]
  for (const [settings, strategy, isTold] of STRATEGIES)
    test(`${settings} is ${strategy}`, () => {
      const { config, notes } = convert(`${MODELS}\nrouter_settings: ${settings}`)
      assert.deepEqual(config.routing, { strategy, maxAttempts: 3 })
      assert.equal(notesOn(notes, 'router_settings.routing_strategy').length, isTold ? 1 : 0)
    })

  test('timeouts, retries and cooldowns hold for all lines; those of the router count', () => {
    const { config, notes } = convert(`${MODELS}
litellm_settings: { request_timeout: 10, num_retries: 7, cooldown_time: 1, allowed_fails: 3 }
router_settings: { timeout: 20, num_retries: 4, cooldown_time: 30 }`)
    for (const { timeouts, circuit } of config.lines) {
      assert.deepEqual(timeouts, { firstByteMs: 20_000, totalMs: 20_000 })
      assert.deepEqual(circuit, { minimumCalls: 4, windowMs: 60_000, resetMs: 30_000 })
    }
    assert.deepEqual(config.routing, { strategy: 'weighted', maxAttempts: 5 })
    for (const name of ['num_retries', 'cooldown_time', 'allowed_fails'])
      assert.equal(notesOn(notes, `litellm_settings.${name}`).length, 1, name)
  })

  const DROPPING: readonly [all: string, one: string, unsupported: readonly (string | undefined)[]][] = [
    ['{}', '', [undefined, undefined]],
    ['{ drop_params: false }', 'drop_params: false', [undefined, undefined]],
    ['{}', 'drop_params: true', ['drop', undefined]],
    // Either of both has LiteLLM drop them.
    ['{ drop_params: true }', 'drop_params: false', ['drop', 'drop']],
  ]
  for (const [all, one, unsupported] of DROPPING)
    test(`${all} of all and { ${one} } of the first drop what cannot be translated on ${unsupported}`, () => {
      const { config } = convert(`model_list:
  - { model_name: a, litellm_params: { model: anthropic/x, ${one} } }
  - { model_name: b, litellm_params: { model: anthropic/y, api_key: other } }
litellm_settings: ${all}`)
      assert.deepEqual(
        config.lines.map((line) => line.unsupported),
        unsupported,
      )
    })

  test('the master key is a key for calls', () => {
    const { config, notes } = convert(`${MODELS}
general_settings: { master_key: os.environ/LITELLM_MASTER_KEY, allowed_ips: [10.0.0.0/8, nonsense], max_request_size_mb: 2 }`)
    assert.deepEqual(config.accounts, [{ id: 'litellm', name: 'From LiteLLM' }])
    assert.deepEqual(config.keys, [
      { id: 'master', account: 'litellm', secret: 'env:LITELLM_MASTER_KEY', allowIps: ['10.0.0.0/8'] },
    ])
    assert.equal(config.bodyLimitBytes, 2_097_152)
    assert.match(notesOn(notes, 'general_settings.master_key').join(), /ADMIN_TOKEN/)
    assert.match(notesOn(notes, 'general_settings.allowed_ips[1]').join(), /address/)
    const open = convert(MODELS)
    assert.equal(open.config.keys, undefined)
    assert.match(notesOn(open.notes, 'general_settings.master_key').join(), /add an account and a key/)
  })

  const TOLD: readonly [yaml: string, path: string, wayOut: RegExp][] = [
    [
      'general_settings: { database_url: "postgresql://u:secret@h/d" }',
      'general_settings.database_url',
      /DATABASE_URL/,
    ],
    ['environment_variables: { REDIS_HOST: h }', 'environment_variables.REDIS_HOST', /\.env/],
    ['litellm_settings: { cache: true }', 'litellm_settings.cache', /give each model .* a "cache"/],
    ['litellm_settings: { drop_params: true }', 'litellm_settings.drop_params', /"unsupported": "drop"/],
    ['litellm_settings: { max_budget: 9 }', 'litellm_settings.max_budget', /admin\/budgets/],
    ['general_settings: { budget_duration: 30d }', 'general_settings.budget_duration', /admin\/budgets/],
    [
      'router_settings: { provider_budget_config: { a: {} } }',
      'router_settings.provider_budget_config',
      /not of/,
    ],
    ['general_settings: { alerting: [slack] }', 'general_settings.alerting', /admin\/webhooks/],
    ['litellm_settings: { success_callback: [langfuse] }', 'litellm_settings.success_callback', /OTEL/],
    [
      'litellm_settings: { context_window_fallbacks: [{ a: [b] }] }',
      'litellm_settings.context_window_fallbacks',
      /not taken.*contextWindow/,
    ],
    [
      'router_settings: { content_policy_fallbacks: [{ a: [b] }] }',
      'router_settings.content_policy_fallbacks',
      /not taken/,
    ],
    ['router_settings: { redis_host: h }', 'router_settings.redis_host', /REDIS_URL/],
    ['router_settings: { something_new: 1 }', 'router_settings.something_new', /no counterpart/],
    ['guardrails: [{ guardrail_name: g }]', 'guardrails', /add "guards"/],
    ['include: [other.yaml]', 'include', /not read/],
    ['router_settings: [1]', 'router_settings', /no mapping/],
    ['router_settings: { fallbacks: [{ a: [nowhere] }] }', 'router_settings.fallbacks[0].a', /nowhere/],
    ['router_settings: { fallbacks: [{ nowhere: [a] }] }', 'router_settings.fallbacks[0].nowhere', /nowhere/],
  ]
  for (const [yaml, path, wayOut] of TOLD)
    test(`${yaml} is reported`, () => {
      const { notes } = convert(`${MODELS}\n${yaml}`)
      assert.match(notesOn(notes, path).join(), wayOut)
      assert.doesNotMatch(notes.join(), /secret/)
    })

  test('a setting that is off or empty is not reported', () => {
    const { notes } = convert(`${MODELS}
litellm_settings: { cache: false, callbacks: [], set_verbose: null }
general_settings: { master_key: k, database_url: null }`)
    assert.deepEqual(
      notes.filter((note) => !note.startsWith('model_list: ')),
      ['general_settings.master_key: is a key for calls here: for the admin API, set ADMIN_TOKEN'],
    )
  })

  test('models without a price are reported in one line', () => {
    assert.match(notesOn(convert(MODELS).notes, 'model_list').join(), /none for b: they are free/)
  })
})
