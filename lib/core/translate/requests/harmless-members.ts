import { isJsonObject } from '../../json/index.ts'
import { dropped, type MemberRules, refusedUnless } from './member-rules.ts'

/** Values of `include` that ask for a part of the answer which only OpenAI's own tools produce, or for sealed reasoning. */
const HARMLESS_INCLUDES: ReadonlySet<unknown> = new Set([
  'code_interpreter_call.outputs',
  'computer_call_output.output.image_url',
  'file_search_call.results',
  'message.input_image.image_url',
  'reasoning.encrypted_content',
  'web_search_call.action.sources',
  'web_search_call.results',
])

/** The rules of members that do no harm on any line. Those of a direction come first. */
export const HARMLESS_MEMBERS: MemberRules = {
  provider: dropped('the gateway’s own'),
  client_metadata: dropped('labels for the upstream’s own records'),
  metadata: dropped('labels for the upstream’s own records'),
  user: dropped('a label for the upstream’s own records'),
  safety_identifier: dropped('a label for the upstream’s own records'),
  prompt_cache_key: dropped('affects the cost only'),
  prompt_cache_options: dropped('affects the cost only'),
  prompt_cache_retention: dropped('affects the cost only'),
  cache_control: dropped('affects the cost only'),
  service_tier: dropped('affects the speed only'),
  speed: dropped('affects the speed only'),
  stream_options: dropped('concerns the framing of the stream'),
  verbosity: dropped('is a hint only'),
  context_management: dropped('shortens the prompt only'),
  truncation: dropped('shortens the prompt only'),
  diagnostics: dropped('concerns the upstream’s cache'),
  max_tool_calls: dropped('concerns tools that the upstream runs'),
  parallel_tool_calls: refusedUnless('true', (value) => value === true),
  store: refusedUnless('false', (value) => value === false),
  background: refusedUnless('false', (value) => value === false),
  include: refusedUnless(
    'about sealed reasoning or tools that OpenAI runs',
    (value) => Array.isArray(value) && value.every((one) => HARMLESS_INCLUDES.has(one)),
  ),
  text: refusedUnless('without a format', hasNoFormat),
}

/** Whether the `text` of a response request asks for plain text. */
function hasNoFormat(value: unknown): boolean {
  if (!isJsonObject(value)) return false
  const { format } = value
  return (format ?? undefined) === undefined || (isJsonObject(format) && format.type === 'text')
}
