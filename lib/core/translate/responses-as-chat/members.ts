import { becomes, dropped, type MemberRules, refused, refusedUnless } from '../requests/member-rules.ts'

const FALSE = refusedUnless('false', (value) => value === false)

/** How the members of a response request are translated for a line that has chat completions. */
export const RESPONSES_MEMBERS: MemberRules = {
  model: becomes('`model`'),
  input: becomes('`messages`'),
  instructions: becomes('a message of the role `system`, before all others'),
  max_output_tokens: becomes('`max_tokens`; `max_completion_tokens` for OpenAI’s reasoning models'),
  stream: becomes('`stream`'),
  stream_options: dropped('concerns the framing of the stream'),
  temperature: becomes('`temperature`; dropped for OpenAI’s reasoning models, which take none'),
  top_p: becomes('`top_p`; dropped for OpenAI’s reasoning models, which take none'),
  tools: becomes('`tools`; those that OpenAI runs or defines are refused'),
  tool_choice: becomes('`tool_choice`'),
  parallel_tool_calls: becomes('`parallel_tool_calls`, where there are tools'),
  text: becomes('`format`: `response_format`; `verbosity` is dropped'),
  reasoning: becomes('`effort`: `reasoning_effort`; the others are dropped'),
  user: becomes('`user`'),
  safety_identifier: becomes('`user`, where there is none'),
  service_tier: becomes('`service_tier`'),
  include: refusedUnless('`reasoning.encrypted_content`', (value) => onlyReasoning(value)),
  truncation: refusedUnless('`disabled`', (value) => value === 'disabled'),
  top_logprobs: refusedUnless('0', (value) => value === 0),
  store: refusedUnless('false or absent', (value) => value === false),
  background: FALSE,
  previous_response_id: refused,
  conversation: refused,
  prompt: refused,
  provider: dropped('the gateway’s own'),
  metadata: dropped('labels, repeated in the response'),
  max_tool_calls: dropped('concerns tools that OpenAI runs'),
  prompt_cache_key: dropped('affects the cost only'),
  prompt_cache_options: dropped('affects the cost only'),
  prompt_cache_retention: dropped('affects the cost only'),
}

/** Whether `include` asks for nothing but encrypted reasoning; all other values are about tools that OpenAI runs. */
function onlyReasoning(value: unknown): boolean {
  return Array.isArray(value) && value.every((one) => one === 'reasoning.encrypted_content')
}
