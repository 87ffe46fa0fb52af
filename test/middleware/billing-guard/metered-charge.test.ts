import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { estimateTokens } from '../../../lib/core/operations/metering/token-estimate.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import {
  ANTHROPIC,
  ANTHROPIC_STREAM,
  bodyOf,
  type Mode,
  modeName,
  OPENAI,
  OPENAI_STREAM,
  pathOf,
  readExchange,
} from '../../support/exchange.ts'
import {
  chatAnswer,
  chatChunk,
  chatEvents,
  messageAnswer,
  messageEvents,
  startUpstream,
  stream,
  type UpstreamScript,
} from '../../support/scripted-upstream.ts'
import { assertCharged, billedGateway, type Tokens } from './billed-gateway.ts'

interface Row {
  what: string
  mode: Mode
  script: UpstreamScript
  tokens: Tokens
  source?: 'measured' | 'estimated'
  parts?: object
  extra?: Record<string, unknown>
}

const TEXT = 'The quick brown fox jumps over the lazy dog.'
const TOKENS = estimateTokens(TEXT)
const WITH_CACHE = { input_tokens: 30, cache_read_input_tokens: 60, cache_creation_input_tokens: 10 }

const CHARGED: Row[] = [
  {
    what: 'what the upstream reports, its cached input at the price of that',
    mode: OPENAI,
    script: (res) =>
      chatAnswer(res, TEXT, {
        usage: { prompt_tokens: 100, completion_tokens: 7, prompt_tokens_details: { cached_tokens: 60 } },
      }),
    tokens: [100, 60, 0, 7],
  },
  {
    what: 'what the upstream reports, what it wrote to its cache by another name',
    mode: OPENAI,
    script: (res) =>
      chatAnswer(res, TEXT, {
        usage: {
          prompt_tokens: 100,
          completion_tokens: 7,
          prompt_tokens_details: { cached_tokens: 60, cache_creation_input_tokens: 10 },
        },
      }),
    tokens: [100, 60, 10, 7],
  },
  {
    what: 'what the upstream reports, with the thoughts that are in its total only',
    mode: OPENAI,
    script: (res) =>
      chatAnswer(res, TEXT, { usage: { prompt_tokens: 9, completion_tokens: 3, total_tokens: 105 } }),
    tokens: [9, 0, 0, 96],
  },
  {
    what: 'what the upstream reports, what it wrote to its cache at the price of that',
    mode: ANTHROPIC,
    script: (res) => messageAnswer(res, TEXT, { usage: { ...WITH_CACHE, output_tokens: 7 } }),
    tokens: [100, 60, 10, 7],
  },
  ...[{}, { stream_options: { include_usage: true } }, { stream_options: { include_usage: false } }].map(
    (extra): Row => ({
      what: `what the upstream reports, of a request with ${JSON.stringify(extra)}`,
      mode: OPENAI_STREAM,
      extra,
      script: (res, { json }) => {
        const { include_usage: asked } = json.stream_options as { include_usage: boolean }
        const events = chatEvents(['Hel', 'lo'])
        return stream(res, asked ? events : events.filter((event) => !event.includes('"usage"')))
      },
      tokens: [7, 0, 0, 2],
    }),
  ),
  {
    what: 'what the upstream reports at the start and at the end',
    mode: ANTHROPIC_STREAM,
    script: (res) => stream(res, messageEvents(['Hel', 'lo'])),
    tokens: [7, 0, 0, 2],
  },
  {
    what: 'reasoning as output, where it is reported beside it',
    mode: OPENAI,
    script: (res) => {
      const details = { completion_tokens_details: { reasoning_tokens: 40 } }
      chatAnswer(res, TEXT, {
        usage: { prompt_tokens: 100, completion_tokens: 7, total_tokens: 147, ...details },
      })
    },
    tokens: [100, 0, 0, 47],
    parts: { reasoning_tokens: 40 },
  },
  {
    what: 'nothing where the upstream reports zeros, and that once',
    mode: OPENAI,
    script: (res) => chatAnswer(res, TEXT, { usage: { prompt_tokens: 0, completion_tokens: 0 } }),
    tokens: [0, 0, 0, 0],
  },
  {
    what: 'an estimate where the upstream reports nothing',
    mode: ANTHROPIC,
    script: (res) => messageAnswer(res, TEXT, { usage: undefined }),
    tokens: [null, 0, 0, TOKENS],
    source: 'estimated',
  },
  ...[-5, 1.5, '900', 1e300].map(
    (odd): Row => ({
      what: `an estimate where the upstream reports ${JSON.stringify(odd)}`,
      mode: OPENAI,
      script: (res) => chatAnswer(res, TEXT, { usage: { prompt_tokens: odd, completion_tokens: odd } }),
      tokens: [null, 0, 0, TOKENS],
      source: 'estimated',
    }),
  ),
  {
    what: 'the input once where the upstream says that more of it was cached',
    mode: OPENAI,
    script: (res) =>
      chatAnswer(res, TEXT, {
        usage: {
          prompt_tokens: 100,
          completion_tokens: 7,
          prompt_tokens_details: { cached_tokens: 9_000_000 },
        },
      }),
    tokens: [100, 100, 0, 7],
  },
  {
    what: 'more input than was held for where it came to more',
    mode: OPENAI,
    script: (res) => chatAnswer(res, TEXT, { usage: { prompt_tokens: 50_000, completion_tokens: 900 } }),
    tokens: [50_000, 0, 0, 900],
  },
  {
    what: 'a refusal like any other answer',
    mode: ANTHROPIC,
    script: (res) =>
      messageAnswer(res, '', {
        content: [],
        stop_reason: 'refusal',
        usage: { input_tokens: 90, output_tokens: 1 },
      }),
    tokens: [90, 0, 0, 1],
  },
  {
    what: 'what was said before moderation stopped it',
    mode: OPENAI_STREAM,
    script: (res) =>
      stream(res, [
        chatChunk({ content: TEXT }),
        chatChunk({}, 'content_filter', { usage: { prompt_tokens: 100, completion_tokens: 7 } }),
        'data: [DONE]\n\n',
      ]),
    tokens: [100, 0, 0, 7],
  },
]

describe('a completed call is charged', async () => {
  const cleanUp = cleaningUp()
  const upstream = await startUpstream()
  cleanUp.after(() => upstream.close())
  for (const { what, mode, script, tokens, source = 'measured', parts, extra } of CHARGED) {
    it(`${what} (${modeName(mode)})`, async (t) => {
      upstream.script = script
      const gateway = await billedGateway(t, { lines: [{ url: upstream.url, protocol: mode.protocol }] })
      const got = await readExchange(await gateway.post(pathOf(mode), { ...bodyOf(mode), ...extra }))
      assert.equal(got.status, 200)
      const entry = await gateway.entry(got.requestId)
      assert.equal(entry.outcome, 'completed')
      await assertCharged(gateway, entry, tokens, source, parts)
    })
  }
})
