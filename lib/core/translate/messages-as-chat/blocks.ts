import { isJsonObject, type JsonObject, nonEmptyString, objectsIn } from '../../json/index.ts'
import { dataUrl } from '../parts/data-url.ts'
import { Untranslatable } from '../translation.ts'

type BlockTranslator = (block: JsonObject, path: string) => readonly JsonObject[]

/** Translates the blocks of a user's content or of a tool's result, by their types. */
export const USER_BLOCKS: Readonly<Record<string, BlockTranslator>> = {
  text: ({ text }) => textParts(text),
  image: ({ source }, path) => [
    { type: 'image_url', image_url: { url: imageUrl(source, `${path}.source`) } },
  ],
  document: documentParts,
  search_result: ({ title, source, content }) => [
    ...textParts(`${String(title)} (${String(source)})`),
    ...objectsIn(content).flatMap(({ text }) => textParts(text)),
  ],
}

/**
 * Translates content blocks into the parts of a chat message.
 *
 * @throws {Untranslatable} naming the block that has no counterpart.
 */
export function contentParts(content: unknown, path: string): JsonObject[] {
  if (typeof content === 'string') return textParts(content)
  if (!Array.isArray(content)) return []
  return content.flatMap((block: unknown, i) => partsOf(block, `${path}[${i}]`))
}

/** @throws {Untranslatable} naming the block, if it has no counterpart. */
export function partsOf(block: unknown, path: string): readonly JsonObject[] {
  const type = isJsonObject(block) ? String(block.type) : ''
  const translate = Object.hasOwn(USER_BLOCKS, type) ? USER_BLOCKS[type] : undefined
  if (!isJsonObject(block) || !translate) throw new Untranslatable(path)
  return translate(block, path)
}

/** Returns parts as the content of a chat message: a single text as a string, which every upstream accepts. */
export function chatContent(parts: readonly JsonObject[]): string | readonly JsonObject[] {
  const [first] = parts
  return parts.length === 1 && first?.type === 'text' && typeof first.text === 'string' ? first.text : parts
}

function textParts(text: unknown): JsonObject[] {
  return typeof text === 'string' && text !== '' ? [{ type: 'text', text }] : []
}

function imageUrl(source: unknown, path: string): string {
  if (isJsonObject(source)) {
    const { type, url, data, media_type: mediaType } = source
    if (type === 'url' && typeof url === 'string') return url
    if (type === 'base64' && typeof data === 'string') return dataUrl({ mediaType: String(mediaType), data })
  }
  throw new Untranslatable(path)
}

/** Translates a document: a PDF into a file, text into text. Title and context come before it. */
function documentParts(block: JsonObject, path: string): readonly JsonObject[] {
  const { source, title, context, citations } = block
  if (isJsonObject(citations) && citations.enabled === true) throw new Untranslatable(`${path}.citations`)
  if (!isJsonObject(source)) throw new Untranslatable(`${path}.source`)
  const name = nonEmptyString(title)
  const contextParts = textParts(context)
  const { type, data, media_type: mediaType, content } = source
  if (type === 'base64' && typeof data === 'string' && mediaType === 'application/pdf') {
    const file = { filename: name ?? 'document.pdf', file_data: dataUrl({ mediaType, data }) }
    return [...contextParts, { type: 'file', file }]
  }
  const head = [...textParts(name), ...contextParts]
  if (type === 'text') return [...head, ...textParts(data)]
  if (type === 'content') return [...head, ...contentParts(content, `${path}.source.content`)]
  throw new Untranslatable(`${path}.source`)
}
