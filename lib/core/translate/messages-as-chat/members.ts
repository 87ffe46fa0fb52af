import { isJsonObject } from '../../json/index.ts'
import { alwaysRefused, becomes, type MemberRules, refused, refusedUnless } from '../requests/member-rules.ts'

/** How the members of a message request are translated for an OpenAI-style line. */
export const MESSAGES_MEMBERS: MemberRules = {
  model: becomes('`model`'),
  messages: becomes('`messages`'),
  system: becomes('a message of the role `system`'),
  max_tokens: becomes('`max_tokens`; `max_completion_tokens` for OpenAI’s reasoning models; 0 is refused'),
  stream: becomes('`stream`'),
  temperature: becomes('`temperature`; dropped for OpenAI’s reasoning models, which take none'),
  top_p: becomes('`top_p`; dropped for OpenAI’s reasoning models, which take none'),
  stop_sequences: becomes('`stop`; more than four are refused, and any for a reasoning model'),
  tools: becomes(
    '`tools`, web search `web_search_options`; others that Anthropic runs or defines are refused',
  ),
  tool_choice: becomes('`tool_choice` and `parallel_tool_calls`'),
  thinking: becomes('`reasoning_effort`'),
  output_config: becomes('`effort` as `reasoning_effort`, `format` as `response_format`'),
  output_format: becomes('`response_format`'),
  metadata: becomes('`user_id` as `user`, without the session of Claude Code, hashed beyond 64 characters'),
  service_tier: becomes('`service_tier`: `standard_only` as `default`'),
  top_k: refused,
  container: refusedUnless('empty', (value) => isJsonObject(value) && Object.keys(value).length === 0),
  inference_geo: alwaysRefused,
  // The next turn of a thread has only what is new, so that a thread left out would lose the conversation.
  thread: alwaysRefused,
  mcp_servers: refusedUnless('empty', (value) => Array.isArray(value) && value.length === 0),
}
