import { isJsonObject } from '../../json/index.ts'
import { becomes, dropped, type MemberRules, refused, refusedUnless } from '../requests/member-rules.ts'

const ZERO = refusedUnless('0', (value) => value === 0)

/** How the members of a chat completion request are translated for an Anthropic-style line. */
export const CHAT_MEMBERS: MemberRules = {
  model: becomes('`model`'),
  messages: becomes('`messages` and `system`'),
  system: becomes('`system`, before those of `messages`'),
  max_completion_tokens: becomes('`max_tokens`, before the member of that name'),
  max_tokens: becomes('`max_tokens`; without either the model’s `maxOutputTokens`, or 4096'),
  stream: becomes('`stream`'),
  temperature: becomes('`temperature`, at most 1; dropped with thinking, which allows none'),
  top_p: becomes('`top_p`, without `temperature` only; dropped below 0.95 with thinking'),
  top_k: becomes('`top_k`; dropped with thinking'),
  stop: becomes('`stop_sequences`; a blank one is refused'),
  tools: becomes('`tools`'),
  tool_choice: becomes('`tool_choice`'),
  web_search_options: becomes('the tool `web_search`'),
  parallel_tool_calls: becomes('`tool_choice.disable_parallel_tool_use`'),
  reasoning_effort: becomes('`thinking`'),
  reasoning: becomes('`thinking`, where there is no `reasoning_effort`'),
  thinking: becomes('`thinking`, where there is neither of these'),
  response_format: becomes(
    '`output_config.format`; `json_object` without a `schema`, and schemas that refer to themselves, an instruction in `system`',
  ),
  user: becomes('`metadata.user_id`; an email address or a phone number is hashed'),
  safety_identifier: becomes('as `user`, where there is none'),
  service_tier: becomes('`service_tier`: `default` and `flex` as `standard_only`, the others as `auto`'),
  cache_control: becomes('`cache_control`'),
  store: dropped('for the upstream’s own records'),
  seed: dropped('has no guarantee'),
  random_seed: dropped('Mistral’s name of it'),
  prediction: dropped('affects the speed only'),
  n: refusedUnless('1', (value) => value === 1),
  frequency_penalty: ZERO,
  presence_penalty: ZERO,
  logit_bias: refusedUnless('empty', (value) => isJsonObject(value) && Object.keys(value).length === 0),
  logprobs: refusedUnless('false', (value) => value === false),
  // Mistral's clients send it.
  safe_prompt: refusedUnless('false', (value) => value === false),
  top_logprobs: ZERO,
  modalities: refusedUnless('`["text"]`', (value) => Array.isArray(value) && value.join() === 'text'),
  audio: refused,
  moderation: refused,
  functions: refusedUnless('empty', (value) => Array.isArray(value) && value.length === 0),
  function_call: refusedUnless('`none` or `auto`', (value) => value === 'none' || value === 'auto'),
}
