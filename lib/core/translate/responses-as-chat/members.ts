import { becomes, dropped, type MemberRules, refused, refusedUnless } from '../member-rules.ts'

const FALSE = refusedUnless('false', (value) => value === false)

/** What becomes of the members of a response request on a line that speaks chat completions. */
export const RESPONSES_MEMBERS: MemberRules = {
  model: becomes('`model`'),
  input: becomes('`messages`'),
  instructions: becomes('a message of the role `system`, before all others'),
  max_output_tokens: becomes('`max_tokens`; `max_completion_tokens` for OpenAI’s reasoning models'),
  stream: becomes('`stream`'),
  stream_options: dropped('about the framing of the stream'),
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
  metadata: dropped('labels, which the response repeats'),
  max_tool_calls: dropped('about tools that OpenAI runs'),
  prompt_cache_key: dropped('makes an answer cheaper, not other'),
  prompt_cache_options: dropped('makes an answer cheaper, not other'),
  prompt_cache_retention: dropped('makes an answer cheaper, not other'),
}

/** Reasoning that is not kept comes back sealed; all else belongs to tools that OpenAI runs. */
function onlyReasoning(value: unknown): boolean {
  return Array.isArray(value) && value.every((one) => one === 'reasoning.encrypted_content')
}
