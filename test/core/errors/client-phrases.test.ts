import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import {
  CLIENT_PHRASES,
  phraseOf,
  type ReasonKind,
  type ReasonNumbers,
} from '../../../lib/core/errors/client-phrases.ts'
import { GatewayError } from '../../../lib/core/errors/index.ts'
import { PROTOCOLS, type ProtocolName } from '../../../lib/core/protocols/index.ts'

const readme = readFileSync(new URL('../../../lib/core/errors/README.md', import.meta.url), 'utf8')

const TOO_LONG = { input: 210_000, output: 0, limit: 200_000 }
const NO_ROOM = { input: 199_000, output: 32_000, limit: 200_000 }
const TOO_MUCH_OUTPUT = { input: 180_000, output: 32_000, limit: 200_000 }

/** The phrases that clients look for, by the newest version of each whose code is public. */
const LOOKS_FOR: readonly (readonly [
  client: string,
  form: 'anthropic' | 'openai',
  kind: ReasonKind,
  numbers: readonly (ReasonNumbers | undefined)[],
  text: RegExp,
])[] = [
  ['Claude Code', 'anthropic', 'context', [TOO_LONG, NO_ROOM, undefined], /prompt is too long/i],
  [
    'Claude Code',
    'anthropic',
    'context',
    [TOO_LONG, NO_ROOM],
    /^prompt is too long: \d+ tokens > \d+ maximum$/,
  ],
  [
    'Claude Code',
    'anthropic',
    'context',
    [TOO_MUCH_OUTPUT],
    /input length and `max_tokens` exceed context limit: 180000 \+ 32000 > 200000/,
  ],
  ['Continue', 'anthropic', 'context', [TOO_MUCH_OUTPUT], /decrease input length or max_tokens/],
  ['pi', 'anthropic', 'context', [TOO_LONG, undefined], /prompt is too long/i],
  ['opencode', 'anthropic', 'context', [TOO_MUCH_OUTPUT], /context[_ ]length[_ ]exceeded/i],
  ['LangChain', 'anthropic', 'context', [TOO_LONG, NO_ROOM, undefined], /prompt is too long/],
  ['LiteLLM', 'openai', 'context', [TOO_LONG, TOO_MUCH_OUTPUT], /This model's maximum context length is/],
  ['LiteLLM', 'openai', 'context', [undefined], /is longer than the model's context length/],
  ['LangChain', 'openai', 'context', [TOO_LONG, TOO_MUCH_OUTPUT, undefined], /context_length_exceeded/],
  ['pi', 'openai', 'context', [TOO_LONG, TOO_MUCH_OUTPUT], /maximum context length is \d+ tokens/i],
  ['opencode', 'openai', 'context', [undefined], /exceeds the context window/i],
  ['Cline', 'openai', 'context', [TOO_LONG, TOO_MUCH_OUTPUT, undefined], /context\s*(?:length|window)/i],
  [
    'Qwen Code',
    'openai',
    'context',
    [TOO_LONG, TOO_MUCH_OUTPUT],
    /maximum context length is\s*\d+\s*tokens?.*requested\s*\d+\s*tokens?/,
  ],
  ['Continue', 'openai', 'context', [TOO_LONG, undefined], /reduce the length of the messages/],
  [
    'Claude Code',
    'anthropic',
    'output_limit',
    [{ output: 64_000, limit: 32_000 }],
    /^max_tokens: 64000 > 32000, which is the maximum allowed number of output tokens for this model$/,
  ],
  ['Claude Code', 'anthropic', 'thinking_signature', [undefined], /Invalid `signature` in `thinking` block/],
  ['LiteLLM', 'openai', 'thinking_signature', [undefined], /invalid_encrypted_content|could not be verified/],
  [
    'Claude Code',
    'anthropic',
    'thinking_enabled',
    [undefined],
    /thinking\.type[^a-z]{1,8}enabled.*?not supported/,
  ],
  [
    'Claude Code',
    'anthropic',
    'thinking_adaptive',
    [undefined],
    /thinking\.type[^a-z]{1,8}adaptive.*?not supported/,
  ],
  ['Claude Code', 'anthropic', 'effort', [undefined], /not support.*effort parameter/],
  ['Claude Code', 'anthropic', 'image_invalid', [undefined], /could not process image/i],
  [
    'Codex',
    'openai',
    'image_invalid',
    [undefined],
    /The image data you provided does not represent a valid image/,
  ],
  ['Claude Code', 'anthropic', 'image_too_large', [undefined], /image exceeds.*maximum/],
  ['Claude Code', 'anthropic', 'image_dimensions', [undefined], /image dimensions exceed.*many-image/],
  ['Claude Code', 'anthropic', 'too_much_media', [undefined], /too much media/],
  ['Claude Code', 'anthropic', 'pdf_invalid', [undefined], /could not process pdf/i],
  ['Claude Code', 'anthropic', 'pdf_pages', [{ limit: 100 }], /maximum of \d+ PDF pages/],
  ['Claude Code', 'anthropic', 'pdf_pages', [undefined], /pdf pages/i],
  ['Claude Code', 'anthropic', 'pdf_password', [undefined], /The PDF specified is password protected/],
  ['Claude Code', 'anthropic', 'credit', [undefined], /credit balance is too low/i],
  ['LangChain', 'openai', 'credit', [undefined], /insufficient[_ -]?quota/i],
]

/** Words by which pi, opencode and LiteLLM recognize a limit on requests, so that they wait instead of compacting. */
const RATE_LIMIT = /rate[\s_-]*limit|too many requests/i

describe('the phrases that clients act on', () => {
  for (const [client, form, kind, numbers, text] of LOOKS_FOR)
    for (const figures of numbers)
      it(`${client} recognizes ${kind} in the form of ${form} with ${JSON.stringify(figures)}`, () => {
        assert.match(phraseOf({ kind, numbers: figures }, form), text)
      })

  it('are known for every reason', () => {
    const known = new Set(LOOKS_FOR.map(([, , kind]) => kind))
    assert.deepEqual([...known].sort(), Object.keys(CLIENT_PHRASES).sort())
  })

  it('never resemble a request limit', () => {
    for (const kind of Object.keys(CLIENT_PHRASES) as ReasonKind[])
      for (const form of ['anthropic', 'openai'] as const)
        for (const numbers of [undefined, TOO_LONG, TOO_MUCH_OUTPUT])
          assert.doesNotMatch(phraseOf({ kind, numbers }, form), RATE_LIMIT)
  })

  it('contain the space left for the prompt if too little is left for an answer', () => {
    assert.equal(
      phraseOf({ kind: 'context', numbers: NO_ROOM }, 'anthropic'),
      'prompt is too long: 199000 tokens > 195904 maximum',
    )
    // As with a window of the size of a test's, in which no such room could be kept.
    const small = { input: 900, output: 8000, limit: 1000 }
    assert.equal(
      phraseOf({ kind: 'context', numbers: small }, 'anthropic'),
      'prompt is too long: 900 tokens > 500 maximum',
    )
  })

  it('contain no figures that contradict the refusal', () => {
    const fits = { input: 100, output: 20, limit: 200 }
    for (const form of ['anthropic', 'openai'] as const)
      assert.equal(phraseOf({ kind: 'context', numbers: fits }, form), phraseOf({ kind: 'context' }, form))
  })
})

describe('an error with a reason', () => {
  const bodyOf = (error: GatewayError, protocol: ProtocolName) =>
    PROTOCOLS[protocol].errorBody(error, 'req_1') as { error: { message: string; code?: string } }

  it('has a text for each protocol, and keeps its code', () => {
    const error = new GatewayError('context_too_long', { reason: { kind: 'context', numbers: TOO_LONG } })
    assert.match(
      bodyOf(error, 'anthropic').error.message,
      /^prompt is too long: 210000 tokens > 200000 maximum$/,
    )
    for (const protocol of ['openai', 'ark'] as const) {
      const { code, message } = bodyOf(error, protocol).error
      assert.equal(code, 'context_too_long')
      assert.match(message, /maximum context length is 200000 tokens/)
      assert.equal(message, error.message)
    }
  })

  it('can be derived from a code that has only one', () => {
    assert.match(
      bodyOf(new GatewayError('context_too_long'), 'anthropic').error.message,
      /^prompt is too long\./,
    )
    assert.match(
      bodyOf(new GatewayError('insufficient_balance'), 'anthropic').error.message,
      /credit balance/,
    )
  })

  it('uses a given message in every protocol', () => {
    const error = new GatewayError('context_too_long', { message: 'Own words.' })
    for (const protocol of Object.keys(PROTOCOLS) as ProtocolName[])
      assert.equal(bodyOf(error, protocol).error.message, 'Own words.')
  })
})

it('the phrases in the documentation are those of the code', () => {
  const [, behind = ''] = readme.split('## Words that clients act on')
  const [section = ''] = behind.split('\n## ')
  const quotes = [...section.matchAll(/"([^"]+)"/g)].map(([, quote = '']) => quote)
  const phrases = (['anthropic', 'openai'] as const).flatMap((form) => [
    phraseOf({ kind: 'context', numbers: TOO_LONG }, form),
    phraseOf({ kind: 'credit' }, form),
  ])
  assert.ok(quotes.length > 2)
  for (const quote of quotes)
    assert.ok(
      phrases.some((phrase) => phrase.startsWith(quote)),
      quote,
    )
})
