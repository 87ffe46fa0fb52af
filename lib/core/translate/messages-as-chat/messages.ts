import {
  isJsonObject,
  type JsonObject,
  type JsonTally,
  newTally,
  nonEmptyString,
  objectsIn,
} from '../../json/index.ts'
import { type ChatToolResult, chatToolResult, dataUrl } from '../chat-content.ts'
import { withoutLeftOut } from '../member-rules.ts'
import { memberOf, UNSIGNED } from '../reasoning.ts'
import { eachCallOnce, resultsBehindCalls } from '../tool-calls.ts'
import { chatToolId, plainToolId, toolName } from '../tool-ids.ts'
import { type LeaveOut, type RequestContext, refuse, Untranslatable } from '../translation.ts'
import { SEARCH_NAME } from '../web-search.ts'
import { toolCallOf } from './tools.ts'

/**
 * Translates the system prompt and the turns of a conversation into the messages of a chat.
 *
 * @throws {Untranslatable} naming the block that has no counterpart.
 */
export function chatMessages(
  { system, messages }: JsonObject,
  { upstreamModel, leaveOut = refuse }: RequestContext,
): JsonObject[] {
  const turns = Array.isArray(messages) ? messages : []
  const conversation = { upstreamModel, leaveOut, tally: newTally() }
  const translated = turns.flatMap((turn: unknown, i) => messagesOf(turn, `messages[${i}]`, conversation))
  const ordered = resultsBehindCalls(translated, (message) => ({
    isAssistants: message.role === 'assistant',
    calls: objectsIn(message.tool_calls).map(({ id }) => id),
    resultOf: message.tool_call_id,
  }))
  return [
    ...systemMessage(system, 'system', leaveOut),
    ...ordered.map((message) => withLineIds(message, upstreamModel)),
  ]
}

/** Gives calls and results, which have the caller's ids, the ids of the line. */
function withLineIds(message: JsonObject, upstreamModel: string): JsonObject {
  const { role, tool_calls: calls, tool_call_id: result } = message
  if (role === 'tool') return { ...message, tool_call_id: chatToolId(String(result), upstreamModel) }
  if (calls === undefined) return message
  const own = objectsIn(calls).map((call) => ({ ...call, id: chatToolId(String(call.id), upstreamModel) }))
  return { ...message, tool_calls: own }
}

/** The facts that all turns of a conversation are translated with. */
interface Conversation {
  readonly upstreamModel: string
  readonly leaveOut: LeaveOut
  /** The size of the sealed ids, and of the inputs that are a text. */
  readonly tally: JsonTally
}

function messagesOf(turn: unknown, path: string, conversation: Conversation): readonly JsonObject[] {
  const { leaveOut } = conversation
  if (!isJsonObject(turn)) throw new Untranslatable(path)
  const contentPath = `${path}.content`
  switch (turn.role) {
    case 'system':
      return systemMessage(turn.content, contentPath, leaveOut)
    case 'user':
      return userMessages(turn.content, contentPath, conversation)
    case 'assistant':
      return assistantMessage(turn.content, contentPath, conversation)
    default:
      throw new Untranslatable(`${path}.role`)
  }
}

function systemMessage(content: unknown, path: string, leaveOut: LeaveOut): readonly JsonObject[] {
  const parts = contentParts(content, path, leaveOut)
  // Some upstreams accept instructions as a single text only.
  const texts = parts.map(({ text }) => nonEmptyString(text))
  const isText = texts.every((text) => text !== undefined)
  if (parts.length === 0) return []
  const isPlain = isText && !parts.some(isMarked)
  return [{ role: 'system', content: isPlain ? texts.join('\n\n') : chatContent(parts) }]
}

/** Translates a user turn: tool results first, as both protocols demand, then their images and the user's content. */
function userMessages(
  content: unknown,
  path: string,
  { upstreamModel, leaveOut }: Conversation,
): readonly JsonObject[] {
  if (!Array.isArray(content)) return userMessage(contentParts(content, path, leaveOut))
  const results: JsonObject[] = []
  const attachments: JsonObject[] = []
  const translate = (block: unknown, at: string, leave: LeaveOut): readonly JsonObject[] => {
    if (!isJsonObject(block) || block.type !== 'tool_result') return partsOf(block, at, leave)
    const result = toolResult(block, at, leave, upstreamModel)
    results.push(result.message)
    attachments.push(...result.attachments)
    return []
  }
  const parts = content.some((block) => isJsonObject(block) && block.type === 'tool_result')
    ? content.flatMap((block, i) => translate(block, `${path}[${i}]`, leaveOut))
    : withoutLeftOut(content, path, leaveOut, translate)
  return [...results, ...userMessage([...attachments, ...parts])]
}

function userMessage(parts: readonly JsonObject[]): readonly JsonObject[] {
  return parts.length > 0 ? [{ role: 'user', content: chatContent(parts) }] : []
}

function toolResult(
  block: JsonObject,
  path: string,
  leaveOut: LeaveOut,
  upstreamModel: string,
): ChatToolResult {
  const { tool_use_id: id, is_error: failed } = block
  if (typeof id !== 'string') throw new Untranslatable(`${path}.tool_use_id`)
  const parts = contentParts(block.content, `${path}.content`, leaveOut)
  const label = chatToolId(id, upstreamModel)
  return chatToolResult({ id, label }, parts, failed === true)
}

/** Translates an assistant turn into one message: text, tool calls, and reasoning that came from an OpenAI-style line. */
function assistantMessage(
  content: unknown,
  path: string,
  { leaveOut, tally }: Conversation,
): readonly JsonObject[] {
  const blocks: unknown[] = Array.isArray(content) ? content : [{ type: 'text', text: content }]
  let text = ''
  const reasoning: Record<string, string> = {}
  const uses: { readonly block: JsonObject; readonly at: string }[] = []
  let leftOut = false
  for (const [i, block] of blocks.entries()) {
    const at = `${path}[${i}]`
    if (!isJsonObject(block)) throw new Untranslatable(at)
    if (block.type === 'text') text += nonEmptyString(block.text) ?? ''
    else if (block.type === 'tool_use') uses.push({ block, at })
    // Reasoning that an Anthropic-style line signed is left out.
    else if (block.type === 'thinking') {
      const member = memberOf(block.signature)
      if (member) reasoning[member] = (reasoning[member] ?? '') + String(block.thinking)
    } else if (block.type !== 'redacted_thinking' && !isSearch(block)) {
      leaveOut(at)
      leftOut = true
    }
  }
  const calls = eachCallOnce(uses, ({ block: { id, name, input } }) => ({ id, name, input })).map(
    ({ block, at }) => toolCallOf(block, at, tally),
  )
  if (text === '' && calls.length === 0) {
    if (leftOut) throw new Untranslatable(path)
    return []
  }
  return [
    {
      role: 'assistant',
      content: text === '' ? null : text,
      ...reasoning,
      ...(calls.length > 0 && { tool_calls: calls }),
    },
  ]
}

/** Whether a block is of a web search. The text has the conclusions of the model, and the results are encrypted. */
function isSearch({ type, name }: JsonObject): boolean {
  return type === 'web_search_tool_result' || (type === 'server_tool_use' && name === SEARCH_NAME)
}

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
function contentParts(content: unknown, path: string, leaveOut: LeaveOut): JsonObject[] {
  if (typeof content === 'string') return textParts(content)
  if (!Array.isArray(content)) return []
  return withoutLeftOut(content, path, leaveOut, partsOf)
}

/** Translates one block; the result is empty for one that is left out. */
function partsOf(block: unknown, path: string, leaveOut: LeaveOut): readonly JsonObject[] {
  if (!isJsonObject(block)) throw new Untranslatable(path)
  const type = String(block.type)
  const translate = Object.hasOwn(USER_BLOCKS, type) ? USER_BLOCKS[type] : undefined
  if (translate) return marked(translate(block, path, leaveOut), block)
  leaveOut(path)
  return []
}

/** Applies the `cache_control` of a block to the last of its parts. */
function marked(parts: readonly JsonObject[], { cache_control: mark }: JsonObject): readonly JsonObject[] {
  const last = parts.at(-1)
  return isJsonObject(mark) && last ? [...parts.slice(0, -1), { ...last, cache_control: mark }] : parts
}

const isMarked = ({ cache_control: mark }: JsonObject): boolean => mark !== undefined

/** Returns parts as the content of a chat message: a single text as a string, which every upstream accepts. */
function chatContent(parts: readonly JsonObject[]): string | readonly JsonObject[] {
  const [first] = parts
  const isPlain = parts.length === 1 && first?.type === 'text' && !isMarked(first)
  return isPlain && typeof first.text === 'string' ? first.text : parts
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

/** Removes what came from OpenAI-style lines and Anthropic-style lines refuse: reasoning, citations, and seals in ids of tools. */
export function messagesWithoutForeign(json: JsonObject): JsonObject {
  const { messages } = json
  if (!Array.isArray(messages)) return json
  return { ...json, messages: messages.flatMap((turn) => (isJsonObject(turn) ? cleanTurn(turn) : [turn])) }
}

function cleanTurn(turn: JsonObject): JsonObject[] {
  const { content } = turn
  if (!Array.isArray(content)) return [turn]
  const blocks = content.filter((block) => !(isJsonObject(block) && memberOf(block.signature)))
  // An empty turn is refused too.
  if (blocks.length === 0) return []
  return [{ ...turn, content: blocks.map((block) => (isJsonObject(block) ? cleanBlock(block) : block)) }]
}

function cleanBlock(block: JsonObject): JsonObject {
  const { id, tool_use_id: result } = block
  if (plainToolId(id) !== id) return { ...block, id: plainToolId(id) }
  return plainToolId(result) !== result
    ? { ...block, tool_use_id: plainToolId(result) }
    : cleanCitations(block)
}

function cleanCitations(block: JsonObject): JsonObject {
  const { citations, ...rest } = block
  if (!Array.isArray(citations)) return block
  const signed = citations.filter(
    (citation) => !(isJsonObject(citation) && citation.encrypted_index === UNSIGNED),
  )
  if (signed.length === citations.length) return block
  return signed.length > 0 ? { ...rest, citations: signed } : rest
}
