import { ANTHROPIC, ANTHROPIC_STREAM, OPENAI, OPENAI_STREAM } from '../../../support/exchange.ts'
import { chatAnswer, chatChunk, messageAnswer, stream } from '../../../support/scripted-upstream.ts'
import { describeUsage, type MeteredRow, messageStream, TEXT } from '../support/metered-rows.ts'

const USAGE = { prompt_tokens: 15, completion_tokens: 8 }
const COUNTS = { input_tokens: 15, output_tokens: 8 }

/** A chat stream that reports its tier as OpenAI does: in each chunk. */
const chatStreamOf = (tier: string): MeteredRow['script'] => {
  const of = (chunk: string) => chunk.replace('data: {', `data: {"service_tier":"${tier}",`)
  const usage = `data: ${JSON.stringify({ choices: [], usage: USAGE })}\n\n`
  return (res) =>
    stream(res, [of(chatChunk({ content: TEXT })), of(chatChunk({}, 'stop')), of(usage), 'data: [DONE]\n\n'])
}

const TIERS = [
  ['priority', { service_tier: 'priority' }],
  ['flex', { service_tier: 'flex' }],
  ['default', {}],
] as const

const OPENAI_ROWS = TIERS.flatMap(([tier, parts]): MeteredRow[] => [
  {
    name: `with the tier ${tier}`,
    mode: OPENAI,
    script: (res) => chatAnswer(res, TEXT, { usage: USAGE, service_tier: tier }),
    tokens: [15, 0, 0, 8],
    source: 'measured',
    parts,
  },
  {
    name: `with the tier ${tier}`,
    mode: OPENAI_STREAM,
    script: chatStreamOf(tier),
    tokens: [15, 0, 0, 8],
    source: 'measured',
    parts,
  },
])

const ANTHROPIC_TIERS = [
  [{ service_tier: 'priority' }, { service_tier: 'priority' }],
  [{ service_tier: 'standard', speed: 'fast' }, { service_tier: 'fast' }],
  [{ service_tier: 'standard', speed: 'standard' }, {}],
] as const

const ANTHROPIC_ROWS = ANTHROPIC_TIERS.flatMap(([tier, parts]): MeteredRow[] => [
  {
    name: `with ${JSON.stringify(tier)}`,
    mode: ANTHROPIC,
    script: (res) => messageAnswer(res, TEXT, { usage: { ...COUNTS, ...tier } }),
    tokens: [15, 0, 0, 8],
    source: 'measured',
    parts,
  },
  {
    name: `with ${JSON.stringify(tier)}`,
    mode: ANTHROPIC_STREAM,
    script: messageStream({ ...COUNTS, ...tier, output_tokens: 1 }, { output_tokens: 8 }),
    tokens: [15, 0, 0, 8],
    source: 'measured',
    parts,
  },
])

describeUsage('the usage in the log tells the tier that the upstream served a call in', [
  ...OPENAI_ROWS,
  ...ANTHROPIC_ROWS,
])
