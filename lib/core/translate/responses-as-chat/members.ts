import { alwaysRefused, becomes, type MemberRules, refusedUnless } from '../requests/member-rules.ts'

/** How the members of a response request are translated for a line that has chat completions. */
export const RESPONSES_MEMBERS: MemberRules = {
  model: becomes('`model`'),
  input: becomes('`messages`'),
  instructions: becomes('a message of the role `system`, before all others'),
  max_output_tokens: becomes('`max_tokens`; `max_completion_tokens` for OpenAI’s reasoning models'),
  stream: becomes('`stream`'),
  temperature: becomes('`temperature`; dropped for OpenAI’s reasoning models, which take none'),
  top_p: becomes('`top_p`; dropped for OpenAI’s reasoning models, which take none'),
  tools: becomes('`tools`, web search `web_search_options`; others that OpenAI runs or defines are refused'),
  tool_choice: becomes('`tool_choice`'),
  parallel_tool_calls: becomes('`parallel_tool_calls`, where there are tools'),
  text: becomes('`format` as `response_format`; `verbosity` is dropped'),
  reasoning: becomes('`effort` as `reasoning_effort`; with `summary`, reasoning comes as one'),
  user: becomes('`user`'),
  safety_identifier: becomes('`user`, where there is none'),
  service_tier: becomes('`service_tier`'),
  top_logprobs: refusedUnless('0', (value) => value === 0),
  previous_response_id: alwaysRefused,
  conversation: alwaysRefused,
  prompt: alwaysRefused,
}
