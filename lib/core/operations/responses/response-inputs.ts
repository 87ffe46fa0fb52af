import type { Operation } from '../operation.ts'
import { readTokenCount } from '../token-count.ts'
import { responses } from './responses.ts'

const { kind, protocol, schema, promptPrefix, upstreamBody, readAnswer } = responses
const common = { kind, protocol, schema, promptPrefix, upstreamBody }

/** OpenAI-style count of a response's input tokens: `POST /v1/responses/input_tokens`. It is free: no model runs. */
export const responseInputTokens: Operation = {
  ...common,
  name: 'responses.input_tokens',
  priceUnit: 'none',
  path: '/v1/responses/input_tokens',
  upstreamPath: '/responses/input_tokens',
  // An input that is too long for the model can be counted, too.
  facts: (json, raw, estimate) => ({
    ...responses.facts(json, raw, estimate),
    windowTokens: 0,
    maxOutputTokens: undefined,
  }),
  readAnswer: readTokenCount,
  estimatedAnswer: (inputTokens) => ({ object: 'response.input_tokens', input_tokens: inputTokens }),
}

/**
 * OpenAI-style compaction of a conversation: `POST /v1/responses/compact`. A model writes it, and seals it, so that no
 * line has to keep it.
 */
export const compactResponse: Operation = {
  ...common,
  name: 'responses.compact',
  priceUnit: 'tokens',
  path: '/v1/responses/compact',
  upstreamPath: '/responses/compact',
  facts: responses.facts,
  readAnswer,
}
