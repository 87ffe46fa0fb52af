import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { isJsonObject, type JsonObject } from '../../../lib/core/json/index.ts'
import { chatCompletions, messages, type Operation, responses } from '../../../lib/core/operations/index.ts'
import { translationOf, Untranslatable } from '../../../lib/core/translate/index.ts'
import { ANTHROPIC, ask, OPENAI, tool } from './support/requests.ts'

/** The efforts of both protocols, from the least on. */
const EFFORTS = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max']

/** The efforts that a model takes, by the providers' documentation; all others get a refusal from the provider. */
const ON_CHAT: Readonly<Record<string, readonly string[]>> = {
  o3: ['low', 'medium', 'high'],
  'o4-mini-2025-04-16': ['low', 'medium', 'high'],
  'openai/gpt-oss-120b': ['low', 'medium', 'high'],
  'gpt-5': ['minimal', 'low', 'medium', 'high'],
  'openai/gpt-5-mini': ['minimal', 'low', 'medium', 'high'],
  'gpt-5-codex': ['low', 'medium', 'high'],
  'gpt-5-pro': ['high'],
  'gpt-5.1': ['none', 'low', 'medium', 'high'],
  'gpt-5.1-codex-mini': ['low', 'medium', 'high'],
  'gpt-5.1-codex-max': ['low', 'medium', 'high', 'xhigh'],
  'gpt-5.2': ['none', 'low', 'medium', 'high', 'xhigh'],
  'gpt-5.2-pro-2025-12-11': ['medium', 'high', 'xhigh'],
  'gpt-5.3-codex': ['low', 'medium', 'high', 'xhigh'],
  'gpt-5.5': ['none', 'low', 'medium', 'high', 'xhigh'],
  'gpt-5.6-terra': ['none', 'low', 'medium', 'high', 'xhigh', 'max'],
  'gpt-6': ['none', 'low', 'medium', 'high', 'xhigh', 'max'],
  'gemini-3-pro': ['minimal', 'low', 'medium', 'high'],
  // Nobody knows theirs, so that the provider decides.
  'deepseek-v4': EFFORTS,
  'qwen/qwen3-235b': EFFORTS,
  'anthropic/claude-opus-4.6': EFFORTS,
}

/** The efforts of models with adaptive thinking. None of these can be told not to think. */
const ON_MESSAGES: Readonly<Record<string, readonly string[]>> = {
  'claude-opus-4-6': ['low', 'medium', 'high', 'max'],
  'claude-sonnet-4-6': ['low', 'medium', 'high', 'max'],
  'claude-opus-4-7': ['low', 'medium', 'high', 'xhigh', 'max'],
  'us.anthropic.claude-fable-5': ['low', 'medium', 'high', 'xhigh', 'max'],
  'claude-opus-5-5': ['low', 'medium', 'high', 'xhigh', 'max'],
  'claude-haiku-5-1': ['low', 'medium', 'high', 'xhigh', 'max'],
}

interface Direction {
  readonly name: string
  readonly from: Operation
  readonly line: typeof OPENAI | typeof ANTHROPIC
  /** The member that asks for an effort. */
  readonly param: string
  request(effort: string): JsonObject
  readonly models: Readonly<Record<string, readonly string[]>>
  /** Returns the effort that the line gets. */
  sent(json: JsonObject): unknown
}

const chatEffort = ({ reasoning_effort: effort }: JsonObject): unknown => effort
const messageEffort = ({ output_config: config }: JsonObject): unknown =>
  isJsonObject(config) ? config.effort : undefined

const DIRECTIONS: readonly Direction[] = [
  {
    name: 'a message on a chat line',
    from: messages,
    line: OPENAI,
    param: 'output_config.effort',
    request: (effort) => ({ max_tokens: 9000, messages: ask, output_config: { effort } }),
    models: ON_CHAT,
    sent: chatEffort,
  },
  {
    name: 'a response on a chat line',
    from: responses,
    line: OPENAI,
    param: 'reasoning.effort',
    request: (effort) => ({ input: 'hi', reasoning: { effort } }),
    models: ON_CHAT,
    sent: chatEffort,
  },
  {
    name: 'a chat on an Anthropic-style line',
    from: chatCompletions,
    line: ANTHROPIC,
    param: 'reasoning_effort',
    request: (effort) => ({ messages: ask, reasoning_effort: effort }),
    models: ON_MESSAGES,
    sent: messageEffort,
  },
  {
    name: 'a chat of an OpenRouter client on an Anthropic-style line',
    from: chatCompletions,
    line: ANTHROPIC,
    param: 'reasoning',
    request: (effort) => ({ messages: ask, reasoning: { effort } }),
    models: ON_MESSAGES,
    sent: messageEffort,
  },
  {
    name: 'a response on an Anthropic-style line',
    from: responses,
    line: ANTHROPIC,
    param: 'reasoning.effort',
    request: (effort) => ({ input: 'hi', reasoning: { effort } }),
    models: ON_MESSAGES,
    sent: messageEffort,
  },
]

/** Translates a request, where members may be left out or not. */
function translated({ from, line }: Direction, json: JsonObject, upstreamModel: string, drops: boolean) {
  const dropped: string[] = []
  const reported: string[] = []
  const made = translationOf(from, line)?.request(
    { model: 'm', ...json },
    {
      upstreamModel,
      defaultMaxTokens: 9000,
      report: (param) => void reported.push(param),
      ...(drops && { leaveOut: (param: string) => void dropped.push(param) }),
    },
  )
  return { made: made ?? {}, dropped, reported }
}

describe('an effort keeps its meaning, or the caller reads that it does not:', () => {
  for (const direction of DIRECTIONS) {
    const { name, param, request, models, sent } = direction
    for (const [model, known] of Object.entries(models)) {
      for (const effort of EFFORTS) {
        const ask = () => translated(direction, request(effort), model, false)
        const isTaken = known.includes(effort)
        const isLeast = effort === 'none' || effort === 'minimal'
        if (isTaken)
          it(`${name}, ${effort} for ${model}, is sent as it is`, () => {
            const { made, reported } = ask()
            assert.deepEqual([sent(made), reported], [effort, []])
          })
        else if (effort === 'none' && models === ON_MESSAGES && !/-5/.test(model))
          it(`${name}, ${effort} for ${model}, is no thinking`, () => {
            const { made, reported } = ask()
            assert.deepEqual([sent(made), made.thinking, reported], [undefined, undefined, []])
          })
        else if (isLeast)
          it(`${name}, ${effort} for ${model}, is the least that there is, and reported`, () => {
            const { made, reported } = ask()
            assert.deepEqual([sent(made), reported], [known[0], [param]])
          })
        else
          it(`${name}, ${effort} for ${model}, is refused by its name, or dropped`, () => {
            assert.throws(ask, (error) => {
              assert.ok(error instanceof Untranslatable)
              assert.deepEqual([error.param, error.what], [param, `the effort "${effort}"`])
              return true
            })
            const { made, dropped } = translated(direction, request(effort), model, true)
            assert.deepEqual([sent(made), dropped], [undefined, [param]])
          })
      }
    }
  }

  for (const direction of DIRECTIONS.filter(({ line }) => line === ANTHROPIC)) {
    it(`${direction.name}, is a budget that grows with it, for models without efforts`, () => {
      const budgets = EFFORTS.map((effort) => {
        const { made, reported } = translated(
          direction,
          direction.request(effort),
          'claude-sonnet-4-5',
          false,
        )
        assert.deepEqual(reported, [])
        return isJsonObject(made.thinking) ? made.thinking.budget_tokens : undefined
      })
      // Both are all that the maximum of tokens allows.
      assert.deepEqual(budgets, [undefined, 1024, 1800, 4500, 7200, 8550, 8550])
    })
  }
})

describe('what a line cannot do about reasoning is reported:', () => {
  const [message, response, chat] = DIRECTIONS as [Direction, Direction, Direction]
  const functions = { tools: [{ name: 'f', input_schema: {} }] }
  const forced = { tools: [tool('f')], tool_choice: 'required' }
  const off = { max_tokens: 9000, messages: ask, thinking: { type: 'disabled' } }
  const ROWS: [
    what: string,
    direction: Direction,
    json: JsonObject,
    model: string,
    made: unknown,
    reported: string[],
  ][] = [
    [
      'a model that does not reason',
      message,
      message.request('max'),
      'gpt-4o',
      undefined,
      ['output_config.effort'],
    ],
    [
      'a model that does not reason, of a response',
      response,
      response.request('high'),
      'llama-3.3-70b',
      undefined,
      ['reasoning.effort'],
    ],
    ['no reasoning of a model that does not', response, response.request('none'), 'gpt-4o', undefined, []],
    [
      'functions in its place',
      message,
      { ...message.request('xhigh'), ...functions },
      'gpt-5.6',
      'none',
      ['output_config.effort'],
    ],
    ['functions, of which nothing is lost', message, { ...off, ...functions }, 'gpt-5.6', 'none', []],
    ['thinking that can be turned off', message, off, 'gpt-5.1', 'none', []],
    ['thinking that cannot', message, off, 'gpt-5', 'minimal', ['thinking']],
    ['thinking of which it is not known', message, off, 'deepseek-v4', undefined, []],
    [
      'a forced tool',
      chat,
      { ...chat.request('high'), ...forced },
      'claude-sonnet-4-5',
      undefined,
      ['reasoning_effort'],
    ],
    [
      'too little output',
      chat,
      { ...chat.request('high'), max_tokens: 1000 },
      'claude-sonnet-4-5',
      undefined,
      ['reasoning_effort'],
    ],
  ]
  for (const [what, direction, json, model, made, reported] of ROWS)
    it(what, () => {
      const result = translated(direction, json, model, false)
      assert.deepEqual([direction.sent(result.made), result.reported], [made, reported])
    })
})

describe('how many words an answer has', () => {
  const [, response, chat] = DIRECTIONS as [Direction, Direction, Direction]
  const onAnthropic = DIRECTIONS[4] as Direction
  const asked = (verbosity: string) => ({ input: 'hi', text: { verbosity } })

  it('is a member of a chat for models that have it', () => {
    for (const model of ['gpt-5', 'openai/gpt-5-mini', 'gpt-5.4', 'gpt-6']) {
      const { made, reported } = translated(response, asked('low'), model, false)
      assert.deepEqual([made.verbosity, reported], ['low', []])
    }
  })

  it('is left out for others, and reported unless it is the usual one', () => {
    for (const [direction, model] of [
      [response, 'gpt-4o'],
      [response, 'gpt-5-chat-latest'],
      [response, 'qwen3-8b'],
      [onAnthropic, 'claude-opus-5'],
    ] as const) {
      const low = translated(direction, asked('low'), model, false)
      assert.deepEqual(
        [low.made.verbosity, low.made.text, low.reported],
        [undefined, undefined, ['text.verbosity']],
      )
      assert.deepEqual(translated(direction, asked('medium'), model, false).reported, [])
    }
    const ofChat = translated(chat, { messages: ask, verbosity: 'high' }, 'claude-opus-5', false)
    assert.deepEqual([ofChat.made.verbosity, ofChat.reported], [undefined, ['verbosity']])
  })
})
