import { isJsonObject, type JsonObject, nonEmptyString } from '../../json/index.ts'
import { memberOf } from '../parts/reasoning-details.ts'
import { toolId } from '../parts/tool-ids.ts'
import { type ChatToolResult, chatToolResult } from '../parts/tool-results.ts'
import { Untranslatable } from '../translation.ts'
import { chatContent, contentParts, partsOf } from './blocks.ts'

/**
 * Translates the system prompt and the turns of a conversation into the messages of a chat.
 *
 * @throws {Untranslatable} naming the block that has no counterpart.
 */
export function chatMessages({ system, messages }: JsonObject): JsonObject[] {
  const turns = Array.isArray(messages) ? messages : []
  return [
    ...systemMessage(system, 'system'),
    ...turns.flatMap((turn: unknown, i) => messagesOf(turn, `messages[${i}]`)),
  ]
}

function messagesOf(turn: unknown, path: string): readonly JsonObject[] {
  if (!isJsonObject(turn)) throw new Untranslatable(path)
  const contentPath = `${path}.content`
  switch (turn.role) {
    case 'system':
      return systemMessage(turn.content, contentPath)
    case 'user':
      return userMessages(turn.content, contentPath)
    case 'assistant':
      return assistantMessage(turn.content, contentPath)
    default:
      throw new Untranslatable(`${path}.role`)
  }
}

function systemMessage(content: unknown, path: string): readonly JsonObject[] {
  const parts = contentParts(content, path)
  // Some upstreams accept instructions as a single text only.
  const texts = parts.map(({ type, text }) => (type === 'text' ? nonEmptyString(text) : undefined))
  const isText = texts.every((text) => text !== undefined)
  if (parts.length === 0) return []
  return [{ role: 'system', content: isText ? texts.join('\n\n') : chatContent(parts) }]
}

/** Translates a user turn: tool results first, as both protocols demand, then their images and the user's content. */
function userMessages(content: unknown, path: string): readonly JsonObject[] {
  if (!Array.isArray(content)) return userMessage(contentParts(content, path))
  const results: JsonObject[] = []
  const attachments: JsonObject[] = []
  const parts: JsonObject[] = []
  for (const [i, block] of content.entries()) {
    const at = `${path}[${i}]`
    if (isJsonObject(block) && block.type === 'tool_result') {
      const result = toolResult(block, at)
      results.push(result.message)
      attachments.push(...result.attachments)
    } else parts.push(...partsOf(block, at))
  }
  return [...results, ...userMessage([...attachments, ...parts])]
}

function userMessage(parts: readonly JsonObject[]): readonly JsonObject[] {
  return parts.length > 0 ? [{ role: 'user', content: chatContent(parts) }] : []
}

function toolResult(block: JsonObject, path: string): ChatToolResult {
  const { tool_use_id: id, is_error: failed } = block
  if (typeof id !== 'string') throw new Untranslatable(`${path}.tool_use_id`)
  return chatToolResult(toolId(id), contentParts(block.content, `${path}.content`), failed === true)
}

/** Translates an assistant turn into one message: text, tool calls, and reasoning that came from an OpenAI-style line. */
function assistantMessage(content: unknown, path: string): readonly JsonObject[] {
  const blocks: unknown[] = Array.isArray(content) ? content : [{ type: 'text', text: content }]
  let text = ''
  const reasoning: Record<string, string> = {}
  const calls: JsonObject[] = []
  for (const [i, block] of blocks.entries()) {
    const at = `${path}[${i}]`
    if (!isJsonObject(block)) throw new Untranslatable(at)
    if (block.type === 'text') text += nonEmptyString(block.text) ?? ''
    else if (block.type === 'tool_use') calls.push(toolCall(block, at))
    // Reasoning that an Anthropic-style line signed is left out.
    else if (block.type === 'thinking') {
      const member = memberOf(block.signature)
      if (member) reasoning[member] = (reasoning[member] ?? '') + String(block.thinking)
    } else if (block.type !== 'redacted_thinking') throw new Untranslatable(at)
  }
  if (text === '' && calls.length === 0) return []
  return [
    {
      role: 'assistant',
      content: text === '' ? null : text,
      ...reasoning,
      ...(calls.length > 0 && { tool_calls: calls }),
    },
  ]
}

function toolCall({ id, name, input }: JsonObject, path: string): JsonObject {
  if (typeof id !== 'string') throw new Untranslatable(`${path}.id`)
  if (typeof name !== 'string') throw new Untranslatable(`${path}.name`)
  return { id: toolId(id), type: 'function', function: { name, arguments: JSON.stringify(input ?? {}) } }
}
