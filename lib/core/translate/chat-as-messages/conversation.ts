import {
  isJsonObject,
  type JsonObject,
  type JsonTally,
  newTally,
  nonEmptyString,
  objectsIn,
} from '../../json/index.ts'
import { type DataUrl, readDataUrl } from '../chat-content.ts'
import { withoutLeftOut } from '../member-rules.ts'
import { thinkingBlocks } from '../reasoning.ts'
import { eachCallOnce, resultsBehindCalls, type ToolRole, toolInput } from '../tool-calls.ts'
import { LONG, toolName, UniqueLineIds } from '../tool-ids.ts'
import { type LeaveOut, Untranslatable } from '../translation.ts'
import { cacheControlOf, toolUseOf } from './tools.ts'

/** A chat in Anthropic's form: the system prompt, then turns of user and assistant that alternate. */
interface Conversation {
  readonly system: readonly JsonObject[]
  readonly turns: readonly Turn[]
}

export interface Turn {
  readonly role: 'user' | 'assistant'
  readonly content: JsonObject[]
}

/** The text of the user turn of a chat that does not begin with one: Anthropic demands a user turn first. */
const FIRST_USER_TEXT = '.'

/** The text of a user turn behind a last one of the assistant, for models that demand it. */
const LAST_USER_TEXT = 'Continue.'

/**
 * Translates the messages of a chat into system blocks and alternating turns. Instructions from the middle move to the
 * top, where all models accept them. Adjacent messages of one role, tool results included, become one turn.
 *
 * @throws {Untranslatable} naming the message, or the part of a message, that has no counterpart.
 */
export function conversationOf({ messages, system: given }: JsonObject, leaveOut: LeaveOut): Conversation {
  const system = systemBlocks(given, 'system', leaveOut)
  const turns: Turn[] = []
  /** The size of the arguments of all tool calls. */
  const tally = newTally()
  const ids = UniqueLineIds.forMessages()
  /** How many tool results the last turn begins with. */
  let results = 0
  /** The ids of the calls whose results the last turn has. */
  let answered = new Set<unknown>()
  const add = (role: Turn['role'], blocks: readonly JsonObject[]): void => {
    if (blocks.length === 0) return
    if (role === 'assistant' && turns.length === 0) add('user', [{ type: 'text', text: FIRST_USER_TEXT }])
    const last = turns.at(-1)
    if (last?.role === role) last.content.push(...blocks)
    else {
      turns.push({ role, content: [...blocks] })
      results = 0
      answered = new Set()
    }
  }
  /** Inserts a result before other content of the user turn: Anthropic demands results first. */
  const addResult = (given: readonly JsonObject[]): void => {
    const last = turns.at(-1)
    // Anthropic accepts one result of each call.
    const isFirst = ({ tool_use_id: id }: JsonObject): boolean => last?.role !== 'user' || !answered.has(id)
    const result = withIds(given, ids).filter(isFirst)
    if (last?.role === 'user') last.content.splice(results, 0, ...result)
    else add('user', result)
    results += result.length
    for (const { tool_use_id: id } of result) answered.add(id)
  }
  const addUser = (blocks: readonly JsonObject[]): void => {
    const first = blocks.filter(isResult)
    if (first.length > 0) addResult(first)
    add('user', first.length > 0 ? blocks.filter((block) => !isResult(block)) : blocks)
  }
  const placed = objectsIn(messages).map((message, i) => ({ message, path: `messages[${i}]` }))
  for (const { message, path } of resultsBehindCalls(placed, ({ message }) => roleOf(message))) {
    switch (message.role) {
      case 'system':
      case 'developer':
        system.push(...withCacheControl(message, systemBlocks(message.content, `${path}.content`, leaveOut)))
        break
      case 'user':
        addUser(withCacheControl(message, contentBlocks(message.content, `${path}.content`, leaveOut)))
        break
      case 'assistant':
        if (turns.at(-1)?.role !== 'assistant') ids.beginTurn()
        add('assistant', withIds(assistantBlocks(message, path, tally, leaveOut), ids))
        break
      case 'tool':
        addResult(withCacheControl(message, [toolResult(message, path, leaveOut)]))
        break
      default:
        throw new Untranslatable(`${path}.role`)
    }
  }
  // Many prompts are instructions only.
  if (system.length > 0 && turns.length === 0) add('user', [{ type: 'text', text: FIRST_USER_TEXT }])
  if (turns.length === 0) throw new Untranslatable('messages')
  trimPrefill(turns)
  return { system, turns }
}

/** Applies the `cache_control` of a message to its last block: some callers set it there instead of on the part. */
function withCacheControl(message: JsonObject, blocks: JsonObject[]): JsonObject[] {
  const cacheControl = cacheControlOf(message)
  const last = blocks.at(-1)
  return cacheControl && last ? [...blocks.slice(0, -1), { ...last, cache_control: cacheControl }] : blocks
}

function roleOf({ role, content, tool_calls: calls, tool_call_id: resultOf }: JsonObject): ToolRole {
  if (role === 'tool') return { isAssistants: false, resultOf }
  if (role !== 'assistant') return { isAssistants: false }
  return { isAssistants: true, calls: [...objectsIn(calls), ...objectsIn(content)].map(({ id }) => id) }
}

/** Gives calls and results the ids that the line gets. */
function withIds(blocks: readonly JsonObject[], ids: UniqueLineIds): JsonObject[] {
  return blocks.map((block) => {
    if (block.type === 'tool_use') return { ...block, id: ids.idOfCall(String(block.id)) }
    if (block.type !== 'tool_result') return block
    return { ...block, tool_use_id: ids.idOfResult(String(block.tool_use_id)) }
  })
}

function systemBlocks(content: unknown, path: string, leaveOut: LeaveOut): JsonObject[] {
  const blocks = contentBlocks(content, path, leaveOut)
  const other = blocks.findIndex(({ type }) => type !== 'text')
  if (other >= 0) throw new Untranslatable(path)
  return blocks
}

function assistantBlocks(
  message: JsonObject,
  path: string,
  tally: JsonTally,
  leaveOut: LeaveOut,
): JsonObject[] {
  const calls = objectsIn(message.tool_calls).map((call, i) =>
    toolUseOf(call, `${path}.tool_calls[${i}]`, tally),
  )
  if (isJsonObject(message.audio)) throw new Untranslatable(`${path}.audio`)
  // Beside `tool_calls` it is the old form of one of them.
  if (isJsonObject(message.function_call) && calls.length === 0)
    throw new Untranslatable(`${path}.function_call`)
  const content = contentBlocks(message.content, `${path}.content`, leaveOut)
  const inContent = content.map((block) => withInput(block, `${path}.content`, tally))
  const said = [...inContent, ...contentBlocks(message.refusal, path, leaveOut), ...calls]
  return [...thinkingBlocks(message), ...withCacheControl(message, withEachCallOnce(said))]
}

function withInput(block: JsonObject, path: string, tally: JsonTally): JsonObject {
  if (block.type !== 'tool_use') return block
  const input = toolInput(block.input, tally)
  if (!input) throw new Untranslatable(path)
  return { ...block, input }
}

/** Some callers write a call as a part of the content, too. */
function withEachCallOnce(blocks: readonly JsonObject[]): JsonObject[] {
  const uses = blocks.filter(({ type }) => type === 'tool_use')
  const once = eachCallOnce(uses, ({ id, name, input }) => ({ id, name, input }))
  return once.length === uses.length
    ? [...blocks]
    : [...blocks.filter(({ type }) => type !== 'tool_use'), ...once]
}

const isResult = ({ type }: JsonObject): boolean => type === 'tool_result'

function toolResult(message: JsonObject, path: string, leaveOut: LeaveOut): JsonObject {
  const { tool_call_id: id } = message
  if (typeof id !== 'string') throw new Untranslatable(`${path}.tool_call_id`)
  const content = contentBlocks(message.content, `${path}.content`, leaveOut)
  const [first] = content
  const plain =
    content.length === 1 && first?.type === 'text' && !first.cache_control ? first.text : undefined
  return { type: 'tool_result', tool_use_id: id, ...(first && { content: plain ?? content }) }
}

/** Trims the end of a prefilled answer: Anthropic refuses white space there. */
function trimPrefill(turns: readonly Turn[]): void {
  const last = turns.at(-1)
  const block = last?.content.at(-1)
  if (last?.role !== 'assistant' || block?.type !== 'text' || typeof block.text !== 'string') return
  last.content[last.content.length - 1] = { ...block, text: block.text.trimEnd() }
}

/** Adds a user turn behind a last one of the assistant. Behind a tool call only its result may stand. */
export function endedByUser(turns: readonly Turn[]): readonly Turn[] {
  const last = turns.at(-1)
  if (last?.role !== 'assistant' || last.content.some(({ type }) => type === 'tool_use')) return turns
  return [...turns, { role: 'user', content: [{ type: 'text', text: LAST_USER_TEXT }] }]
}

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
function contentBlocks(content: unknown, path: string, leaveOut: LeaveOut): JsonObject[] {
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
  return id
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
