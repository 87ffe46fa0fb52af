import { isJsonObject, type JsonObject, nonEmptyString, objectsIn } from '../../json/index.ts'
import { dataUrl } from '../parts/data-url.ts'
import { toolName } from '../parts/tool-names.ts'
import { withoutLeftOut } from '../requests/without-left-out.ts'
import { type LeaveOut, Untranslatable } from '../translation.ts'

type BlockTranslator = (block: JsonObject, path: string, leaveOut: LeaveOut) => readonly JsonObject[]

/** Translates the blocks of a user's content or of a tool's result, by their types. */
export const USER_BLOCKS: Readonly<Record<string, BlockTranslator>> = {
  text: ({ text }) => textParts(text),
  image: imageParts,
  document: documentParts,
  // A chat has all tools from the beginning, so that there is nothing to load.
  tool_reference: ({ tool_name: name }) => textParts(`Tool: ${String(toolName(name))}`),
  search_result: ({ title, source, content }) => [
    ...textParts(`${String(title)} (${String(source)})`),
    ...objectsIn(content).flatMap(({ text }) => textParts(text)),
  ],
}

/**
 * Translates content blocks into the parts of a chat message.
 *
 * @throws {Untranslatable} naming a block that has no counterpart, or the content if no block has one.
 */
export function contentParts(content: unknown, path: string, leaveOut: LeaveOut): JsonObject[] {
  if (typeof content === 'string') return textParts(content)
  if (!Array.isArray(content)) return []
  return withoutLeftOut(content, path, leaveOut, partsOf)
}

/** Translates one block; nothing stands for one that is left out. */
export function partsOf(block: unknown, path: string, leaveOut: LeaveOut): readonly JsonObject[] {
  if (!isJsonObject(block)) throw new Untranslatable(path)
  const type = String(block.type)
  const translate = Object.hasOwn(USER_BLOCKS, type) ? USER_BLOCKS[type] : undefined
  if (translate) return translate(block, path, leaveOut)
  leaveOut(path)
  return []
}

/** Returns parts as the content of a chat message: a single text as a string, which every upstream accepts. */
export function chatContent(parts: readonly JsonObject[]): string | readonly JsonObject[] {
  const [first] = parts
  return parts.length === 1 && first?.type === 'text' && typeof first.text === 'string' ? first.text : parts
}

function textParts(text: unknown): JsonObject[] {
  return typeof text === 'string' && text !== '' ? [{ type: 'text', text }] : []
}

function imageParts({ source }: JsonObject, path: string, leaveOut: LeaveOut): readonly JsonObject[] {
  const url = isJsonObject(source) ? imageUrl(source) : undefined
  if (url !== undefined) return [{ type: 'image_url', image_url: { url } }]
  leaveOut(`${path}.source`)
  return []
}

function imageUrl({ type, url, data, media_type: mediaType }: JsonObject): string | undefined {
  if (type === 'url' && typeof url === 'string') return url
  if (type === 'base64' && typeof data === 'string') return dataUrl({ mediaType: String(mediaType), data })
  return undefined
}

/** Translates a document: a PDF into a file, text into text. Title and context come before it. */
function documentParts(block: JsonObject, path: string, leaveOut: LeaveOut): readonly JsonObject[] {
  const { source, title, context, citations } = block
  if (isJsonObject(citations) && citations.enabled === true) leaveOut(`${path}.citations`)
  const name = nonEmptyString(title)
  const contextParts = textParts(context)
  const { type, data, media_type: mediaType, content } = isJsonObject(source) ? source : {}
  if (type === 'base64' && typeof data === 'string' && mediaType === 'application/pdf') {
    const file = { filename: name ?? 'document.pdf', file_data: dataUrl({ mediaType, data }) }
    return [...contextParts, { type: 'file', file }]
  }
  const head = [...textParts(name), ...contextParts]
  if (type === 'text') return [...head, ...textParts(data)]
  if (type === 'content') return [...head, ...contentParts(content, `${path}.source.content`, leaveOut)]
  leaveOut(`${path}.source`)
  return []
}
