import { isJsonObject, isText, type JsonObject, objectsIn } from '../../json/index.ts'
import { sealedTokens, TOKENS_PER_MADE_IMAGE } from '../tokens/made-media.ts'
import { estimateTokens, jsonText } from '../tokens/token-estimate.ts'

/** The members of a message or delta that contain output, by the names of all upstreams. */
export interface ChatOutput {
  content?: unknown
  reasoning_content?: unknown
  reasoning?: unknown
  reasoning_details?: unknown
  refusal?: unknown
  tool_calls?: unknown
  function_call?: unknown
  audio?: unknown
  images?: unknown
}

/** Returns the text of a message or delta that is counted as output. */
export function outputText(output: ChatOutput): string {
  let text = ''
  for (const value of [output.content, reasoningOf(output), output.refusal]) {
    if (typeof value === 'string') text += value
  }
  if (Array.isArray(output.content)) for (const item of output.content) text += partText(item)
  if (Array.isArray(output.tool_calls)) {
    for (const call of output.tool_calls as { function?: unknown; custom?: unknown }[]) {
      text += callText(call?.function ?? call?.custom)
    }
  }
  return text + callText(output.function_call)
}

/** Returns what was thought. Some upstreams say it in one member, some in a list, and hosted routers in both. */
function reasoningOf({
  reasoning_content: content,
  reasoning,
  reasoning_details: details,
}: ChatOutput): unknown {
  if (isText(content)) return content
  if (isText(reasoning) || !Array.isArray(details)) return reasoning
  return objectsIn(details).reduce(
    (all, detail) => all + textIn(detail, 'text') + textIn(detail, 'summary'),
    '',
  )
}

/** Returns the name and the input of a call of a function or of a custom tool. */
function callText(call: unknown): string {
  if (!isJsonObject(call)) return ''
  return textIn(call, 'name') + jsonText(call.arguments ?? call.input)
}

/** Returns the text of a content part, and what was thought in it, which some upstreams say in parts of a part. */
function partText(part: unknown): string {
  if (!isJsonObject(part)) return ''
  let text = textIn(part, 'text') + textIn(part, 'refusal') + textIn(part, 'thinking')
  for (const thoughts of [part.thinking, part.summary])
    for (const item of objectsIn(thoughts)) text += textIn(item, 'text')
  return text
}

/**
 * Returns the tokens of what a message or delta has besides its text: images, and what its text does not show of sealed
 * reasoning.
 *
 * @param shown the reasoning that the deltas before have shown, and what is sealed does not tell again.
 */
export function textlessTokens(output: ChatOutput, shown = { tokens: 0 }): number {
  const { content, images, reasoning_details: details } = output
  const inContent = Array.isArray(content)
    ? objectsIn(content).filter(({ type }) => IMAGES.has(type)).length
    : 0
  const made = (inContent + (Array.isArray(images) ? images.length : 0)) * TOKENS_PER_MADE_IMAGE
  if (!details) return made
  const sealed = objectsIn(details).reduce((all, { data }) => all + sealedTokens(data), 0)
  shown.tokens += estimateTokens(jsonText(reasoningOf(output)))
  const hidden = Math.max(0, sealed - shown.tokens)
  shown.tokens -= sealed - hidden
  return made + hidden
}

const IMAGES: ReadonlySet<unknown> = new Set(['image_url', 'image', 'output_image'])

function textIn(value: JsonObject, member: string): string {
  const text = value[member]
  return typeof text === 'string' ? text : ''
}
