import { readDataUrl } from '../parts/data-url.ts'
import { isObject, textIn } from '../parts/json-object.ts'
import { type JsonObject, Untranslatable } from '../translation.ts'

/** What Anthropic's models look at. */
const IMAGE_TYPES: ReadonlySet<string> = new Set(['image/jpeg', 'image/png', 'image/gif', 'image/webp'])

type PartTranslator = (part: JsonObject, path: string) => JsonObject | undefined

/** What becomes of a content part, by its type; undefined leaves out one that says nothing. */
export const CHAT_PARTS: Readonly<Record<string, PartTranslator>> = {
  text: (part) => textBlock(part.text),
  refusal: (part) => textBlock(part.refusal),
  image_url: (part, path) => ({ type: 'image', source: imageSource(part.image_url, `${path}.image_url`) }),
  file: (part, path) => documentBlock(part.file, `${path}.file`),
}

/**
 * The content of a chat message as content blocks; empty where it says nothing, because Anthropic takes no empty text.
 *
 * @throws {Untranslatable} naming the part.
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
  if (!isObject(part)) throw new Untranslatable(path)
  const translate = Object.hasOwn(CHAT_PARTS, String(part.type)) ? CHAT_PARTS[String(part.type)] : undefined
  if (!translate) throw new Untranslatable(path)
  const block = translate(part, path)
  const cacheControl = cacheControlOf(part)
  return block && cacheControl ? { ...block, cache_control: cacheControl } : block
}

/** Where the prompt cache may end: Anthropic's own word for it, which hosted routers take too, or OpenAI's. */
export function cacheControlOf(part: JsonObject): unknown {
  if (isObject(part.cache_control)) return part.cache_control
  return isObject(part.prompt_cache_breakpoint) ? { type: 'ephemeral' } : undefined
}

function textBlock(text: unknown): JsonObject | undefined {
  return typeof text === 'string' && text.trim() !== '' ? { type: 'text', text } : undefined
}

function imageSource(image: unknown, path: string): JsonObject {
  const url = isObject(image) ? textIn(image.url) : undefined
  if (url === undefined) throw new Untranslatable(path)
  if (!/^data:/i.test(url)) return { type: 'url', url }
  const held = readDataUrl(url)
  if (!held || !IMAGE_TYPES.has(held.mediaType)) throw new Untranslatable(`${path}.url`)
  return { type: 'base64', media_type: held.mediaType, data: held.data }
}

function documentBlock(file: unknown, path: string): JsonObject {
  const url = isObject(file) ? textIn(file.file_data) : undefined
  const held = url === undefined ? undefined : readDataUrl(url)
  if (!isObject(file) || !held) throw new Untranslatable(path)
  const title = textIn(file.filename)
  return { type: 'document', source: documentSource(held, path), ...(title !== undefined && { title }) }
}

function documentSource({ mediaType, data }: { mediaType: string; data: string }, path: string): JsonObject {
  if (mediaType === 'application/pdf') return { type: 'base64', media_type: mediaType, data }
  if (!mediaType.startsWith('text/')) throw new Untranslatable(`${path}.file_data`)
  return { type: 'text', media_type: 'text/plain', data: Buffer.from(data, 'base64').toString() }
}
