import { anthropic } from './anthropic.ts'
import { ark, openAi, openAiResponses } from './openai.ts'
import type { Protocol, ProtocolName } from './protocol.ts'

export const PROTOCOLS: Readonly<Record<ProtocolName, Protocol>> = { openai: openAi, anthropic, ark }

/** These match below any mount path, such as `/llm/v1/messages`, and ignore case, as Express does. */
const ANTHROPIC_PATH = /\/v1\/messages(?:\/|$)/i
const RESPONSES_PATH = /\/v1\/responses(?:\/|$)/i
const ARK_PATH = /\/api\/v3(?:\/|$)/i

/**
 * Returns the protocol of a path: Anthropic-style for `/v1/messages…`, task-style for `/api/v3/…`, else OpenAI-style.
 * `/v1/responses…` has its own form of errors in streams.
 */
export function protocolByPath(path: string): Protocol {
  if (ANTHROPIC_PATH.test(path)) return anthropic
  if (ARK_PATH.test(path)) return ark
  return RESPONSES_PATH.test(path) ? openAiResponses : openAi
}
