import assert from 'node:assert/strict'
import { before, beforeEach, describe, it } from 'node:test'
import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { type AssembledGateway, assembledGateway } from '../../support/assembled-gateway.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import { answerJson, type ScriptedUpstream, startUpstream } from '../../support/scripted-upstream.ts'
import { recordingClient, rejection, SDKS } from './clients.ts'

/** The refusal of an upstream, and the text that a client of each protocol must read. */
interface Row {
  readonly what: string
  readonly status?: number
  readonly error: object
  readonly anthropic: RegExp
  readonly openai: RegExp
  readonly code: string
}

/** A part of an upstream's text that no caller may read. */
const SECRET = 'heron'
const says = (message: string) => ({ type: 'invalid_request_error', message: `${message} ${SECRET}` })
const CONTEXT = { code: 'context_too_long' } as const
const INVALID = { code: 'invalid_request' } as const

const ROWS: readonly Row[] = [
  {
    what: 'a prompt that is too long, as Anthropic says it',
    error: says('prompt is too long: 213462 tokens > 200000 maximum'),
    anthropic: /"prompt is too long: 213462 tokens > 200000 maximum"/,
    openai: /This model's maximum context length is 200000 tokens, but you requested 213462 tokens/,
    ...CONTEXT,
  },
  {
    what: 'input and output together, as Anthropic says it',
    error: says('input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease'),
    anthropic: /input length and `max_tokens` exceed context limit: 188240 \+ 21333 > 200000/,
    openai: /requested 209573 tokens \(188240 in the messages, 21333 in the completion\)/,
    ...CONTEXT,
  },
  {
    what: 'messages that are too long, as OpenAI says it',
    error: {
      ...says(
        "This model's maximum context length is 128000 tokens. However, your messages resulted in 150001 tokens.",
      ),
      code: 'context_length_exceeded',
      param: 'messages',
    },
    anthropic: /"prompt is too long: 150001 tokens > 128000 maximum"/,
    openai: /maximum context length is 128000 tokens.*context_length_exceeded/,
    ...CONTEXT,
  },
  {
    what: 'input and output together, as OpenRouter says it',
    error: says(
      "This endpoint's maximum context length is 131072 tokens. However, you requested about 140000 tokens (110000 of text input, 30000 in the output).",
    ),
    anthropic: /exceed context limit: 110000 \+ 30000 > 131072/,
    openai: /requested 140000 tokens \(110000 in the messages, 30000 in the completion\)/,
    ...CONTEXT,
  },
  {
    what: 'output that does not fit, as vLLM says it',
    error: says(
      "'max_tokens' or 'max_completion_tokens' is too large: 30000. This model's maximum context length is 32768 tokens and your request has 10000 input tokens",
    ),
    anthropic: /exceed context limit: 10000 \+ 30000 > 32768/,
    openai: /requested 40000 tokens/,
    ...CONTEXT,
  },
  {
    what: 'members with numbers, as llama.cpp has them',
    error: {
      type: 'exceed_context_size_error',
      message: SECRET,
      code: 400,
      n_prompt_tokens: 9000,
      n_ctx: 8192,
    },
    anthropic: /"prompt is too long: 9000 tokens > 8192 maximum"/,
    openai: /maximum context length is 8192 tokens/,
    ...CONTEXT,
  },
  {
    what: 'a code without figures',
    error: { ...says('No.'), code: 'context_length_exceeded' },
    anthropic: /"prompt is too long\. /,
    openai: /exceeds the context window \(context_length_exceeded\)/,
    ...CONTEXT,
  },
  {
    what: 'more output than the model has',
    error: says(
      'max_tokens: 64000 > 32000, which is the maximum allowed number of output tokens for claude-x',
    ),
    anthropic:
      /"max_tokens: 64000 > 32000, which is the maximum allowed number of output tokens for this model"/,
    openai: /max_tokens is too large: 64000\. This model supports at most 32000 completion tokens/,
    ...INVALID,
  },
  ...[
    'messages.3.content.0: Invalid `signature` in `thinking` block',
    'messages.1.content.0: Invalid `data` in `redacted_thinking` block',
    'messages.1.content.0.thinking.signature: Field required',
    'messages.1.content.4: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified.',
    'Corrupted thought signature.',
  ].map((message) => ({
    what: `a thinking signature: ${message}`,
    error: says(message),
    anthropic: /Invalid `signature` in `thinking` block/,
    openai: /signature of the reasoning could not be verified/,
    ...INVALID,
  })),
  {
    what: 'encrypted reasoning of another organization',
    error: {
      ...says('The encrypted content gAAA could not be verified.'),
      code: 'invalid_encrypted_content',
    },
    anthropic: /Invalid `signature` in `thinking` block/,
    openai: /invalid_encrypted_content/,
    ...INVALID,
  },
  {
    what: 'a type of thinking',
    error: says('"thinking.type.enabled" is not supported for this model.'),
    anthropic: /thinking\.type\.enabled is not supported/,
    openai: /does not support this reasoning setting/,
    ...INVALID,
  },
  {
    what: 'adaptive thinking',
    error: says('adaptive thinking is not supported on this model'),
    anthropic: /thinking\.type\.adaptive is not supported/,
    openai: /does not support adaptive reasoning/,
    ...INVALID,
  },
  {
    what: 'an effort',
    error: says('This model does not support the effort parameter.'),
    anthropic: /does not support the effort parameter/,
    openai: /does not support the effort parameter/,
    ...INVALID,
  },
  {
    what: 'an image that is too large',
    error: says(
      'messages.0.content.1.image.source.base64: image exceeds 5 MB maximum: 7340032 bytes > 5242880 bytes',
    ),
    anthropic: /image exceeds the maximum/,
    openai: /image exceeds the maximum/,
    ...INVALID,
  },
  {
    what: 'an image that is none',
    error: { ...says('You uploaded an unsupported image.'), code: 'image_parse_error' },
    anthropic: /Could not process image/,
    openai: /The image data you provided does not represent a valid image/,
    ...INVALID,
  },
  {
    what: 'pages of a PDF',
    error: says('messages.0.content.0.pdf: A maximum of 100 PDF pages may be provided.'),
    anthropic: /A maximum of 100 PDF pages may be provided/,
    openai: /A maximum of 100 PDF pages may be provided/,
    ...INVALID,
  },
  {
    what: 'a parameter that no client acts on',
    error: says('temperature: range: 0..1'),
    anthropic: /The upstream does not accept a parameter of this request/,
    openai: /The upstream does not accept a parameter of this request/,
    ...INVALID,
  },
]

const MODELS = ['chat', 'claude'] as const

describe('the refusal that an agent reads', () => {
  const cleanUp = cleaningUp()
  let upstream: ScriptedUpstream
  let gateway: AssembledGateway
  before(async () => {
    upstream = await startUpstream()
    cleanUp.after(() => upstream.close())
    const price = { inputPerMillion: '1', outputPerMillion: '1' }
    gateway = await assembledGateway(cleanUp, {
      accounts: [{ id: 'acme', balance: '1000' }],
      models: [
        ...MODELS.map((id) => ({ id, kind: 'chat', maxOutputTokens: 64_000 })),
        { id: 'narrow', kind: 'chat', contextWindow: 10_000 },
      ],
      lines: [
        {
          id: 'a',
          provider: 'a',
          protocol: 'openai',
          baseUrl: `${upstream.url}/v1`,
          models: { chat: 'up', narrow: 'up' },
          price,
        },
        {
          id: 'b',
          provider: 'b',
          protocol: 'anthropic',
          baseUrl: `${upstream.url}/v1`,
          models: { claude: 'up' },
          price,
        },
      ],
    })
  })
  beforeEach(() => {
    upstream.requests.length = 0
  })

  const refusalOf = async (sdk: (typeof SDKS)[number], model: string, extra?: Record<string, unknown>) => {
    const client = recordingClient(sdk, gateway.url, { maxRetries: 2 })
    const error = await rejection(client.ask(model, extra ? { extra } : {}))
    assert.ok(error instanceof (sdk === 'openai' ? OpenAI : Anthropic).BadRequestError, String(error))
    assert.equal(client.answers.length, 1)
    return error
  }

  for (const { what, status = 400, error, code, ...expected } of ROWS) {
    for (const sdk of SDKS) {
      for (const model of MODELS) {
        it(`${what}: ${sdk} SDK, model ${model}`, async () => {
          upstream.script = (res) => answerJson(res, status, { type: 'error', error })
          const raised = await refusalOf(sdk, model)
          assert.match(raised.message, expected[sdk])
          assert.doesNotMatch(raised.message, new RegExp(SECRET))
          if (sdk === 'openai')
            assert.equal((raised as InstanceType<typeof OpenAI.BadRequestError>).code, code)
          assert.equal(upstream.requests.length, 1)
        })
      }
    }
  }

  it('names its own estimate and window before a line is asked', async () => {
    const long = { messages: [{ role: 'user', content: 'heron '.repeat(20_000) }] }
    const tooLong = await refusalOf('anthropic', 'narrow', long)
    const [, tokens, most] = /"prompt is too long: (\d+) tokens > (\d+) maximum"/.exec(tooLong.message) ?? []
    assert.ok(Number(tokens) > 15_000 && Number(most) === 10_000 - 100, tooLong.message)
    const chat = await refusalOf('openai', 'narrow', long)
    assert.match(chat.message, /maximum context length is 10000 tokens, but you requested \d+ tokens/)
    assert.equal(upstream.requests.length, 0)
  })

  it('names the tokens of input and output where only both together are too many', async () => {
    const raised = await refusalOf('anthropic', 'narrow', { max_tokens: 12_000 })
    const [, input, output, limit] = /exceed context limit: (\d+) \+ (\d+) > (\d+)/.exec(raised.message) ?? []
    assert.ok(Number(input) > 0 && Number(input) < 100, raised.message)
    assert.deepEqual([output, limit], ['12000', '10000'])
    assert.equal(upstream.requests.length, 0)
  })
})
