import { anthropic } from './anthropic.ts'
import { ark } from './ark.ts'
import { openAi } from './openai.ts'
import { openAiResponses } from './openai-responses.ts'
import type { Protocol, ProtocolName } from './protocol.ts'

/** Every protocol by its name. */
export const PROTOCOLS: Readonly<Record<ProtocolName, Protocol>> = { openai: openAi, anthropic, ark }

/** Matches a path segment sequence wherever a gateway is mounted, `/llm/v1/messages` included; case as in Express. */
const ANTHROPIC_PATH = /\/v1\/messages(?:\/|$)/i
const RESPONSES_PATH = /\/v1\/responses(?:\/|$)/i
const ARK_PATH = /\/api\/v3(?:\/|$)/i

/**
 * The inbound protocol of a path (spec 4): `/v1/messages…` Anthropic-style, `/api/v3/…` task-style, else OpenAI-style,
 * which words the errors of a stream in a way of its own on `/v1/responses…`.
 */
export function protocolByPath(path: string): Protocol {
  if (ANTHROPIC_PATH.test(path)) return anthropic
  if (ARK_PATH.test(path)) return ark
  return RESPONSES_PATH.test(path) ? openAiResponses : openAi
}
