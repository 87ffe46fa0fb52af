import { z } from 'zod'
import type { Operation } from '../operation.ts'
import { readTokenCount } from '../token-count.ts'
import { messageFacts, messageSchema, messages } from './messages.ts'

/** The schema of a message request of which only the input matters. */
const schema = messageSchema.extend({ max_tokens: z.int().min(0).nullish() })

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
  schema,
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
