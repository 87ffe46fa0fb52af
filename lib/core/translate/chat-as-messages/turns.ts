import {
  isJsonObject,
  type JsonObject,
  type JsonTally,
  newTally,
  objectsIn,
  parseJsonObject,
  parseKeepingIntegers,
} from '../../json/index.ts'
import { thinkingBlocks } from '../parts/reasoning-details.ts'
import { toolId } from '../parts/tool-ids.ts'
import { LONG, toolName } from '../parts/tool-names.ts'
import { type LeaveOut, Untranslatable } from '../translation.ts'
import { cacheControlOf, contentBlocks } from './parts.ts'

/** A chat in Anthropic's form: the system prompt, then turns of user and assistant that alternate. */
export interface Conversation {
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
  /** What the arguments of all tool calls come to. */
  const tally = newTally()
  /** How many tool results the last turn begins with. */
  let results = 0
  const add = (role: Turn['role'], blocks: readonly JsonObject[]): void => {
    if (blocks.length === 0) return
    if (role === 'assistant' && turns.length === 0) add('user', [{ type: 'text', text: FIRST_USER_TEXT }])
    const last = turns.at(-1)
    if (last?.role === role) last.content.push(...blocks)
    else {
      turns.push({ role, content: [...blocks] })
      results = 0
    }
  }
  /** Inserts a result before other content of the user turn: Anthropic demands results first. */
  const addResult = (result: readonly JsonObject[]): void => {
    const last = turns.at(-1)
    if (last?.role === 'user') last.content.splice(results, 0, ...result)
    else add('user', result)
    results += result.length
  }
  const addUser = (blocks: readonly JsonObject[]): void => {
    const first = blocks.filter(isResult)
    if (first.length > 0) addResult(first)
    add('user', first.length > 0 ? blocks.filter((block) => !isResult(block)) : blocks)
  }
  for (const [i, message] of objectsIn(messages).entries()) {
    const path = `messages[${i}]`
    switch (message.role) {
      case 'system':
      case 'developer':
        system.push(...withCacheControl(message, systemBlocks(message.content, `${path}.content`, leaveOut)))
        break
      case 'user':
        addUser(withCacheControl(message, contentBlocks(message.content, `${path}.content`, leaveOut)))
        break
      case 'assistant':
        add('assistant', assistantBlocks(message, path, tally, leaveOut))
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
  for (const member of ['audio', 'function_call']) {
    if (isJsonObject(message[member])) throw new Untranslatable(`${path}.${member}`)
  }
  const calls = objectsIn(message.tool_calls).map((call, i) =>
    toolUse(call, `${path}.tool_calls[${i}]`, tally),
  )
  const content = contentBlocks(message.content, `${path}.content`, leaveOut)
  return [
    ...thinkingBlocks(message),
    ...withCacheControl(message, [...content, ...contentBlocks(message.refusal, path, leaveOut), ...calls]),
  ]
}

function toolUse(call: JsonObject, path: string, tally: JsonTally): JsonObject {
  const { id, function: fn } = call
  if (!isJsonObject(fn) || typeof fn.name !== 'string') throw new Untranslatable(path)
  if (typeof id !== 'string') throw new Untranslatable(`${path}.id`)
  // Some models write no arguments for a function that takes none, and some callers send them as an object.
  const args = fn.arguments === '' ? {} : (fn.arguments ?? {})
  const input = typeof args === 'string' ? parseJsonObject(args, tally, parseKeepingIntegers) : args
  if (!isJsonObject(input)) throw new Untranslatable(`${path}.function.arguments`)
  return { type: 'tool_use', id: toolId(id), name: toolName(fn.name, LONG), input }
}

const isResult = ({ type }: JsonObject): boolean => type === 'tool_result'

function toolResult(message: JsonObject, path: string, leaveOut: LeaveOut): JsonObject {
  const { tool_call_id: id } = message
  if (typeof id !== 'string') throw new Untranslatable(`${path}.tool_call_id`)
  const content = contentBlocks(message.content, `${path}.content`, leaveOut)
  const [first] = content
  const plain =
    content.length === 1 && first?.type === 'text' && !first.cache_control ? first.text : undefined
  return { type: 'tool_result', tool_use_id: toolId(id), ...(first && { content: plain ?? content }) }
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
