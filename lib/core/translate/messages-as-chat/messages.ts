import { isJsonObject, type JsonObject, type JsonTally, newTally, nonEmptyString } from '../../json/index.ts'
import { memberOf } from '../parts/reasoning-details.ts'
import { sealOf, toolId } from '../parts/tool-ids.ts'
import { toolName } from '../parts/tool-names.ts'
import { type ChatToolResult, chatToolResult } from '../parts/tool-results.ts'
import { SEARCH_NAME } from '../requests/web-search.ts'
import { withoutLeftOut } from '../requests/without-left-out.ts'
import { type LeaveOut, Untranslatable } from '../translation.ts'
import { chatContent, contentParts, partsOf } from './blocks.ts'

/**
 * Translates the system prompt and the turns of a conversation into the messages of a chat.
 *
 * @throws {Untranslatable} naming the block that has no counterpart.
 */
export function chatMessages({ system, messages }: JsonObject, leaveOut: LeaveOut): JsonObject[] {
  const turns = Array.isArray(messages) ? messages : []
  const tally = newTally()
  return [
    ...systemMessage(system, 'system', leaveOut),
    ...turns.flatMap((turn: unknown, i) => messagesOf(turn, `messages[${i}]`, leaveOut, tally)),
  ]
}

/** @param tally what the sealed ids of the conversation have come to. */
function messagesOf(
  turn: unknown,
  path: string,
  leaveOut: LeaveOut,
  tally: JsonTally,
): readonly JsonObject[] {
  if (!isJsonObject(turn)) throw new Untranslatable(path)
  const contentPath = `${path}.content`
  switch (turn.role) {
    case 'system':
      return systemMessage(turn.content, contentPath, leaveOut)
    case 'user':
      return userMessages(turn.content, contentPath, leaveOut)
    case 'assistant':
      return assistantMessage(turn.content, contentPath, leaveOut, tally)
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
  return [{ role: 'system', content: isText ? texts.join('\n\n') : chatContent(parts) }]
}

/** Translates a user turn: tool results first, as both protocols demand, then their images and the user's content. */
function userMessages(content: unknown, path: string, leaveOut: LeaveOut): readonly JsonObject[] {
  if (!Array.isArray(content)) return userMessage(contentParts(content, path, leaveOut))
  const results: JsonObject[] = []
  const attachments: JsonObject[] = []
  const translate = (block: unknown, at: string, leave: LeaveOut): readonly JsonObject[] => {
    if (!isJsonObject(block) || block.type !== 'tool_result') return partsOf(block, at, leave)
    const result = toolResult(block, at, leave)
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

function toolResult(block: JsonObject, path: string, leaveOut: LeaveOut): ChatToolResult {
  const { tool_use_id: id, is_error: failed } = block
  if (typeof id !== 'string') throw new Untranslatable(`${path}.tool_use_id`)
  return chatToolResult(toolId(id), contentParts(block.content, `${path}.content`, leaveOut), failed === true)
}

/** Translates an assistant turn into one message: text, tool calls, and reasoning that came from an OpenAI-style line. */
function assistantMessage(
  content: unknown,
  path: string,
  leaveOut: LeaveOut,
  tally: JsonTally,
): readonly JsonObject[] {
  const blocks: unknown[] = Array.isArray(content) ? content : [{ type: 'text', text: content }]
  let text = ''
  const reasoning: Record<string, string> = {}
  const calls: JsonObject[] = []
  let leftOut = false
  for (const [i, block] of blocks.entries()) {
    const at = `${path}[${i}]`
    if (!isJsonObject(block)) throw new Untranslatable(at)
    if (block.type === 'text') text += nonEmptyString(block.text) ?? ''
    else if (block.type === 'tool_use') calls.push(toolCall(block, at, tally))
    // Reasoning that an Anthropic-style line signed is left out.
    else if (block.type === 'thinking') {
      const member = memberOf(block.signature)
      if (member) reasoning[member] = (reasoning[member] ?? '') + String(block.thinking)
    } else if (block.type !== 'redacted_thinking' && !isSearch(block)) {
      leaveOut(at)
      leftOut = true
    }
  }
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

function toolCall({ id, name, input }: JsonObject, path: string, tally: JsonTally): JsonObject {
  if (typeof id !== 'string') throw new Untranslatable(`${path}.id`)
  if (typeof name !== 'string') throw new Untranslatable(`${path}.name`)
  const fn = { name: toolName(name), arguments: JSON.stringify(input ?? {}) }
  return { id: toolId(id), type: 'function', function: fn, ...sealOf(id, tally) }
}

/** Whether a block is of a web search. What the model made of it is in the text, and the results are sealed. */
function isSearch({ type, name }: JsonObject): boolean {
  return type === 'web_search_tool_result' || (type === 'server_tool_use' && name === SEARCH_NAME)
}
