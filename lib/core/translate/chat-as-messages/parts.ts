import { isJsonObject, type JsonObject, nonEmptyString } from '../../json/index.ts'
import { type DataUrl, readDataUrl } from '../parts/data-url.ts'
import { Untranslatable } from '../translation.ts'

/** The image types that Anthropic accepts. */
const IMAGE_TYPES: ReadonlySet<string> = new Set(['image/jpeg', 'image/png', 'image/gif', 'image/webp'])

type PartTranslator = (part: JsonObject, path: string) => JsonObject | undefined

/** Translates content parts, by their types; undefined stands for an empty part, which is left out. */
export const CHAT_PARTS: Readonly<Record<string, PartTranslator>> = {
  text: (part) => textBlock(part.text),
  refusal: (part) => textBlock(part.refusal),
  image_url: (part, path) => ({ type: 'image', source: imageSource(part.image_url, `${path}.image_url`) }),
  file: (part, path) => documentBlock(part.file, `${path}.file`),
}

/**
 * Translates the content of a chat message into content blocks, without empty texts, which Anthropic refuses.
 *
 * @throws {Untranslatable} naming the part that has no counterpart.
 */
export function contentBlocks(content: unknown, path: string): JsonObject[] {
  if (typeof content === 'string') {
    const block = textBlock(content)
    return block ? [block] : []
  }
  if (!Array.isArray(content)) return []
  return content.flatMap((part: unknown, i) => {
    const block = blockOf(part, `${path}[${i}]`)
    return block ? [block] : []
  })
}

function blockOf(part: unknown, path: string): JsonObject | undefined {
  if (!isJsonObject(part)) throw new Untranslatable(path)
  const translate = Object.hasOwn(CHAT_PARTS, String(part.type)) ? CHAT_PARTS[String(part.type)] : undefined
  if (!translate) throw new Untranslatable(path)
  const block = translate(part, path)
  const cacheControl = cacheControlOf(part)
  return block && cacheControl ? { ...block, cache_control: cacheControl } : block
}

/** Returns the `cache_control` of a part; OpenAI's `prompt_cache_breakpoint` counts as one. */
export function cacheControlOf(part: JsonObject): unknown {
  if (isJsonObject(part.cache_control)) return part.cache_control
  return isJsonObject(part.prompt_cache_breakpoint) ? { type: 'ephemeral' } : undefined
}

function textBlock(text: unknown): JsonObject | undefined {
  return typeof text === 'string' && text.trim() !== '' ? { type: 'text', text } : undefined
}

function imageSource(image: unknown, path: string): JsonObject {
  const url = isJsonObject(image) ? nonEmptyString(image.url) : undefined
  if (url === undefined) throw new Untranslatable(path)
  if (!/^data:/i.test(url)) return { type: 'url', url }
  const image64 = readDataUrl(url)
  if (!image64 || !IMAGE_TYPES.has(image64.mediaType)) throw new Untranslatable(`${path}.url`)
  return { type: 'base64', media_type: image64.mediaType, data: image64.data }
}

function documentBlock(file: unknown, path: string): JsonObject {
  const url = isJsonObject(file) ? nonEmptyString(file.file_data) : undefined
  const document = url === undefined ? undefined : readDataUrl(url)
  if (!isJsonObject(file) || !document) throw new Untranslatable(path)
  const title = nonEmptyString(file.filename)
  return { type: 'document', source: documentSource(document, path), ...(title !== undefined && { title }) }
}

function documentSource({ mediaType, data }: DataUrl, path: string): JsonObject {
  if (mediaType === 'application/pdf') return { type: 'base64', media_type: mediaType, data }
  if (!mediaType.startsWith('text/')) throw new Untranslatable(`${path}.file_data`)
  return { type: 'text', media_type: 'text/plain', data: Buffer.from(data, 'base64').toString() }
}
