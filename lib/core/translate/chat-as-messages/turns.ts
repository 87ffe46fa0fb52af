import { isObject, objectsIn, parseObject, textIn } from '../parts/json-object.ts'
import { thinkingBlocks } from '../parts/reasoning-details.ts'
import { toolId } from '../parts/tool-ids.ts'
import { type JsonObject, Untranslatable } from '../translation.ts'
import { cacheControlOf, contentBlocks } from './parts.ts'

/** A chat in Anthropic's order: what stands above all, then users and assistants in turn. */
export interface Conversation {
  readonly system: readonly JsonObject[]
  readonly turns: readonly Turn[]
}

export interface Turn {
  readonly role: 'user' | 'assistant'
  readonly content: JsonObject[]
}

/** Anthropic begins with a user; where the chat does not, this stands for what was said before. */
const BEFORE_THE_FIRST = '.'

/**
 * The messages of a chat as system blocks and alternating turns. Instructions from the middle move to the top, where
 * all models take them; neighbours of one role, tool results among them, become one turn.
 *
 * @throws {Untranslatable} naming the message or the part of it.
 */
export function conversationOf(messages: unknown): Conversation {
  const system: JsonObject[] = []
  const turns: Turn[] = []
  const add = (role: Turn['role'], blocks: readonly JsonObject[]): void => {
    if (blocks.length === 0) return
    if (role === 'assistant' && turns.length === 0) add('user', [{ type: 'text', text: BEFORE_THE_FIRST }])
    const last = turns.at(-1)
    if (last?.role === role) last.content.push(...blocks)
    else turns.push({ role, content: [...blocks] })
  }
  /** Before what the user has said since: Anthropic wants the results of a turn's calls first. */
  const addResults = (results: readonly JsonObject[]): void => {
    const last = turns.at(-1)
    if (last?.role !== 'user') {
      add('user', results)
      return
    }
    const behind = last.content.findIndex(({ type }) => type !== 'tool_result')
    last.content.splice(behind < 0 ? last.content.length : behind, 0, ...results)
  }
  for (const [i, message] of objectsIn(messages).entries()) {
    const path = `messages[${i}]`
    switch (message.role) {
      case 'system':
      case 'developer':
        system.push(...withCacheControl(message, systemBlocks(message.content, `${path}.content`)))
        break
      case 'user':
        add('user', withCacheControl(message, contentBlocks(message.content, `${path}.content`)))
        break
      case 'assistant':
        add('assistant', assistantBlocks(message, path))
        break
      case 'tool':
        addResults(withCacheControl(message, [toolResult(message, path)]))
        break
      default:
        throw new Untranslatable(`${path}.role`)
    }
  }
  if (turns.length === 0) throw new Untranslatable('messages')
  trimPrefill(turns)
  return { system, turns }
}

/** Some callers mark the message instead of its last part. */
function withCacheControl(message: JsonObject, blocks: JsonObject[]): JsonObject[] {
  const cacheControl = cacheControlOf(message)
  const last = blocks.at(-1)
  return cacheControl && last ? [...blocks.slice(0, -1), { ...last, cache_control: cacheControl }] : blocks
}

function systemBlocks(content: unknown, path: string): JsonObject[] {
  const blocks = contentBlocks(content, path)
  const other = blocks.findIndex(({ type }) => type !== 'text')
  if (other >= 0) throw new Untranslatable(path)
  return blocks
}

function assistantBlocks(message: JsonObject, path: string): JsonObject[] {
  for (const member of ['audio', 'function_call']) {
    if (isObject(message[member])) throw new Untranslatable(`${path}.${member}`)
  }
  const calls = objectsIn(message.tool_calls).map((call, i) => toolUse(call, `${path}.tool_calls[${i}]`))
  const said = contentBlocks(message.content, `${path}.content`)
  return [
    ...thinkingBlocks(message),
    ...withCacheControl(message, [...said, ...contentBlocks(message.refusal, path), ...calls]),
  ]
}

function toolUse(call: JsonObject, path: string): JsonObject {
  const { id, function: called } = call
  if (!isObject(called) || typeof called.name !== 'string') throw new Untranslatable(path)
  if (typeof id !== 'string') throw new Untranslatable(`${path}.id`)
  // Models write nothing where a function takes nothing.
  const input = parseObject(textIn(called.arguments) ?? '{}')
  if (!input) throw new Untranslatable(`${path}.function.arguments`)
  return { type: 'tool_use', id: toolId(id), name: called.name, input }
}

function toolResult(message: JsonObject, path: string): JsonObject {
  const { tool_call_id: id } = message
  if (typeof id !== 'string') throw new Untranslatable(`${path}.tool_call_id`)
  const content = contentBlocks(message.content, `${path}.content`)
  const [first] = content
  const plain =
    content.length === 1 && first?.type === 'text' && !first.cache_control ? first.text : undefined
  return { type: 'tool_result', tool_use_id: toolId(id), ...(first && { content: plain ?? content }) }
}

/** Anthropic refuses a beginning of the answer that ends in white space. */
function trimPrefill(turns: readonly Turn[]): void {
  const last = turns.at(-1)
  const block = last?.content.at(-1)
  if (last?.role !== 'assistant' || block?.type !== 'text' || typeof block.text !== 'string') return
  last.content[last.content.length - 1] = { ...block, text: block.text.trimEnd() }
}
