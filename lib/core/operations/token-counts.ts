import { isJsonObject, tokenCount } from '../json/index.ts'
import { messageFacts, messages } from './messages/messages.ts'
import { inputSchema } from './messages/messages-schema.ts'
import type { AnswerReading, Operation } from './operation.ts'
import { responses } from './responses/responses.ts'

/**
 * Anthropic-style count of a message's input tokens: `POST /v1/messages/count_tokens`. It is free, because no model
 * runs.
 */
export const countTokens: Operation = {
  name: 'messages.count_tokens',
  kind: 'chat',
  priceUnit: 'none',
  protocol: 'anthropic',
  path: '/v1/messages/count_tokens',
  upstreamPath: '/messages/count_tokens',
  schema: inputSchema,
  // An input that is too long for the model can be counted, too.
  facts: (json, raw, estimate) => ({
    ...messageFacts(json, raw, estimate),
    windowTokens: 0,
    maxOutputTokens: undefined,
  }),
  promptPrefix: messages.promptPrefix,
  upstreamBody: messages.upstreamBody,
  readAnswer: readTokenCount,
  estimatedAnswer: (inputTokens) => ({ input_tokens: inputTokens }),
}

/** OpenAI-style count of a response's input tokens: `POST /v1/responses/input_tokens`. It is free: no model runs. */
export const responseInputTokens: Operation = {
  name: 'responses.input_tokens',
  kind: responses.kind,
  priceUnit: 'none',
  protocol: responses.protocol,
  path: '/v1/responses/input_tokens',
  upstreamPath: '/responses/input_tokens',
  schema: responses.schema,
  // An input that is too long for the model can be counted, too.
  facts: (json, raw, estimate) => ({
    ...responses.facts(json, raw, estimate),
    windowTokens: 0,
    maxOutputTokens: undefined,
  }),
  promptPrefix: responses.promptPrefix,
  upstreamBody: responses.upstreamBody,
  readAnswer: readTokenCount,
  estimatedAnswer: (inputTokens) => ({ object: 'response.input_tokens', input_tokens: inputTokens }),
}

/** Reads the answer to a count of input tokens. Throws SyntaxError if it has no count. */
function readTokenCount(json: unknown): AnswerReading {
  if (!isJsonObject(json) || tokenCount(json.input_tokens) === undefined)
    throw new SyntaxError('the answer has no "input_tokens"')
  return { substance: 'output', usage: {}, estimateOutput: () => 0 }
}
