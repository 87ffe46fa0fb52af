import { isJsonObject, type JsonObject, nonEmptyString } from '../../json/index.ts'
import { type DataUrl, readDataUrl } from '../parts/data-url.ts'
import { toolId } from '../parts/tool-ids.ts'
import { LONG, toolName } from '../parts/tool-names.ts'
import { withoutLeftOut } from '../requests/without-left-out.ts'
import { type LeaveOut, Untranslatable } from '../translation.ts'

/** The image types that Anthropic accepts, and how the base64 text of such an image begins. */
const IMAGE_TYPES: ReadonlyMap<string, RegExp> = new Map([
  ['image/jpeg', /^\/9j\//],
  ['image/png', /^iVBORw0KGgo/],
  ['image/gif', /^R0lGOD/],
  ['image/webp', /^UklGR.{7}RUJQ/],
])

type PartTranslator = (part: JsonObject, path: string, leaveOut: LeaveOut) => JsonObject | undefined

/** Translates content parts, by their types; undefined stands for an empty part, which is left out. */
export const CHAT_PARTS: Readonly<Record<string, PartTranslator>> = {
  text: (part) => textBlock(part.text),
  refusal: (part) => textBlock(part.refusal),
  image_url: (part, path, leaveOut) => imageBlock(part.image_url, `${path}.image_url`, leaveOut),
  file: (part, path, leaveOut) => documentBlock(part.file, `${path}.file`, leaveOut),
  // Cursor sends them for Claude, in place of `tool_calls` and of messages with the role `tool`.
  tool_use: ({ id, name, input }, path) => ({
    type: 'tool_use',
    id: idOf(id, `${path}.id`),
    name: toolName(name, LONG),
    input,
  }),
  tool_result: resultBlock,
}

/**
 * Translates the content of a chat message into content blocks, without empty texts, which Anthropic refuses.
 *
 * @throws {Untranslatable} naming a part that has no counterpart, or the content if no part has one.
 */
export function contentBlocks(content: unknown, path: string, leaveOut: LeaveOut): JsonObject[] {
  if (typeof content === 'string') {
    const block = textBlock(content)
    return block ? [block] : []
  }
  if (!Array.isArray(content)) return []
  return withoutLeftOut(content, path, leaveOut, (part, at, leave) => blockOf(part, at, leave) ?? [])
}

function blockOf(part: unknown, path: string, leaveOut: LeaveOut): JsonObject | undefined {
  if (!isJsonObject(part)) throw new Untranslatable(path)
  const translate = Object.hasOwn(CHAT_PARTS, String(part.type)) ? CHAT_PARTS[String(part.type)] : undefined
  if (!translate) {
    leaveOut(path)
    return undefined
  }
  const block = translate(part, path, leaveOut)
  const cacheControl = cacheControlOf(part)
  return block && cacheControl ? { ...block, cache_control: cacheControl } : block
}

/** Returns the `cache_control` of a part; OpenAI's `prompt_cache_breakpoint` counts as one. */
export function cacheControlOf(part: JsonObject): unknown {
  if (isJsonObject(part.cache_control)) return part.cache_control
  return isJsonObject(part.prompt_cache_breakpoint) ? { type: 'ephemeral' } : undefined
}

function resultBlock(part: JsonObject, path: string, leaveOut: LeaveOut): JsonObject {
  const content = contentBlocks(part.content, `${path}.content`, leaveOut)
  return {
    type: 'tool_result',
    tool_use_id: idOf(part.tool_use_id, `${path}.tool_use_id`),
    ...(content.length > 0 && { content }),
    ...(part.is_error === true && { is_error: true }),
  }
}

function idOf(id: unknown, path: string): string {
  if (typeof id !== 'string') throw new Untranslatable(path)
  return toolId(id)
}

function textBlock(text: unknown): JsonObject | undefined {
  return typeof text === 'string' && text.trim() !== '' ? { type: 'text', text } : undefined
}

function imageBlock(image: unknown, path: string, leaveOut: LeaveOut): JsonObject | undefined {
  const [given, at] = isJsonObject(image) ? [image.url, `${path}.url`] : [image, path]
  const url = nonEmptyString(given)
  if (url === undefined) throw new Untranslatable(path)
  if (!/^data:/i.test(url)) return { type: 'image', source: { type: 'url', url } }
  const image64 = readDataUrl(url)
  const mediaType = image64 && imageType(image64)
  if (!image64 || mediaType === undefined) {
    leaveOut(at)
    return undefined
  }
  return { type: 'image', source: { type: 'base64', media_type: mediaType, data: image64.data } }
}

/**
 * Returns the type of an image that Anthropic accepts, undefined for any other. Anthropic refuses an image that is not of
 * the type that it is said to be; OpenAI reads it.
 */
function imageType({ mediaType, data }: DataUrl): string | undefined {
  const [own] = [...IMAGE_TYPES].find(([, start]) => start.test(data)) ?? []
  if (own !== undefined) return own
  // Some callers take it from the name of the file.
  const said = mediaType === 'image/jpg' ? 'image/jpeg' : mediaType
  return IMAGE_TYPES.has(said) ? said : undefined
}

function documentBlock(file: unknown, path: string, leaveOut: LeaveOut): JsonObject | undefined {
  const url = isJsonObject(file) ? nonEmptyString(file.file_data) : undefined
  const document = url === undefined ? undefined : readDataUrl(url)
  const source = document && documentSource(document)
  if (!isJsonObject(file) || !source) {
    leaveOut(document ? `${path}.file_data` : path)
    return undefined
  }
  const title = nonEmptyString(file.filename)
  return { type: 'document', source, ...(title !== undefined && { title }) }
}

function documentSource({ mediaType, data }: DataUrl): JsonObject | undefined {
  if (mediaType === 'application/pdf') return { type: 'base64', media_type: mediaType, data }
  if (!mediaType.startsWith('text/')) return undefined
  return { type: 'text', media_type: 'text/plain', data: Buffer.from(data, 'base64').toString() }
}
