import { isJsonObject, type JsonObject, nonEmptyString, objectsIn } from '../../json/index.ts'
import { toolId } from '../parts/tool-ids.ts'
import { chatToolResult } from '../parts/tool-results.ts'
import { Untranslatable } from '../translation.ts'
import { decodeReasoning } from './encrypted-content.ts'
import { isFromChat } from './foreign-reasoning.ts'

/**
 * Translates the input of a response request into the messages of a chat.
 *
 * @throws {Untranslatable} naming the item, or the part of an item, that has no counterpart.
 */
export function inputMessages(input: unknown): readonly JsonObject[] {
  if (typeof input === 'string') return [{ role: 'user', content: input }]
  const chat = new ChatInput()
  for (const [i, item] of (Array.isArray(input) ? input : []).entries()) chat.add(item, `input[${i}]`)
  return chat.end()
}

/**
 * Collects the messages of a chat. Reasoning, text and tool calls of one assistant turn are several items of a response
 * and one message of a chat.
 */
class ChatInput {
  readonly #messages: JsonObject[] = []
  #assistant: Record<string, unknown> | undefined
  /** Images and files of tool results: they follow the last result. */
  #attachments: JsonObject[] = []

  add(item: unknown, path: string): void {
    if (!isJsonObject(item)) throw new Untranslatable(path)
    if (item.type !== 'function_call_output') this.#addAttachments()
    switch (item.type ?? 'message') {
      case 'message':
        if (item.role === 'assistant') this.#addText(item, path)
        else this.#addMessage(item, path)
        break
      case 'function_call':
        this.#addCall(item)
        break
      case 'function_call_output':
        this.#addResult(item, path)
        break
      case 'reasoning':
        this.#addReasoning(item)
        break
      default:
        throw new Untranslatable(path)
    }
  }

  end(): readonly JsonObject[] {
    this.#endTurn()
    this.#addAttachments()
    return this.#messages
  }

  #endTurn(): void {
    const turn = this.#assistant
    this.#assistant = undefined
    // A chat has no message that holds reasoning only.
    if (turn && (turn.content !== null || turn.tool_calls !== undefined)) this.#messages.push(turn)
  }

  #addAttachments(): void {
    if (this.#attachments.length > 0) this.#messages.push({ role: 'user', content: this.#attachments })
    this.#attachments = []
  }

  #turn(): Record<string, unknown> {
    this.#assistant ??= { role: 'assistant', content: null }
    return this.#assistant
  }

  #addMessage({ role, content }: JsonObject, path: string): void {
    this.#endTurn()
    const translated = joinTexts(chatContent(content, `${path}.content`))
    // Most lines without `responses` do not know the role `developer`.
    this.#messages.push({ role: role === 'developer' ? 'system' : role, content: translated })
  }

  #addText({ content }: JsonObject, path: string): void {
    const turn = this.#turn()
    const translated = chatContent(content, `${path}.content`)
    turn.content = joinTexts([...asParts(turn.content), ...asParts(translated)], '')
  }

  #addCall({ call_id: id, name, arguments: args }: JsonObject): void {
    const turn = this.#turn()
    const fn = { name, arguments: typeof args === 'string' ? args : '{}' }
    const call = { id: toolId(String(id)), type: 'function', function: fn }
    turn.tool_calls = [...objectsIn(turn.tool_calls), call]
  }

  #addResult({ call_id: id, output }: JsonObject, path: string): void {
    this.#endTurn()
    const parts = asParts(chatContent(output, `${path}.output`))
    const { message, attachments } = chatToolResult(toolId(String(id)), parts)
    this.#messages.push(message)
    this.#attachments.push(...attachments)
  }

  /**
   * Appends reasoning to the turn, because a chat message has one text for all of it. Reasoning that was not made from a
   * chat is left out: it holds a summary only, which is of no use to a chat line.
   */
  #addReasoning(item: JsonObject): void {
    if (item.id !== undefined && item.id !== null && !isFromChat(item.id)) return
    const turn = this.#turn()
    const parts = objectsIn(item.content).length > 0 ? item.content : item.summary
    const texts = objectsIn(parts).map(({ text }) => nonEmptyString(text) ?? '')
    const encoded = decodeReasoning(item.encrypted_content)
    const reasoning = `${nonEmptyString(turn[encoded.member]) ?? ''}${texts.join('')}`
    if (reasoning !== '') turn[encoded.member] = reasoning
    const details = [...objectsIn(turn.reasoning_details), ...encoded.details]
    if (details.length > 0) turn.reasoning_details = details
  }
}

const asParts = (content: unknown): readonly JsonObject[] =>
  typeof content === 'string' ? [{ type: 'text', text: content }] : objectsIn(content)

/**
 * Joins the texts of a content into one, because some upstreams accept nothing else.
 *
 * @param separator stands between several texts; without it they stay parts.
 */
function joinTexts(
  content: string | readonly JsonObject[],
  separator?: string,
): string | readonly JsonObject[] {
  if (typeof content === 'string' || content.some(({ type }) => type !== 'text')) return content
  if (separator === undefined && content.length > 1) return content
  return content.map(({ text }) => nonEmptyString(text) ?? '').join(separator)
}

function chatContent(content: unknown, path: string): string | readonly JsonObject[] {
  if (typeof content === 'string') return content
  if (!Array.isArray(content)) throw new Untranslatable(path)
  return content.map((part: unknown, i) => chatPart(part, `${path}[${i}]`))
}

function chatPart(part: unknown, path: string): JsonObject {
  if (isJsonObject(part)) {
    const { type, text, refusal, image_url: url, detail, file_data: data, filename } = part
    if (type === 'input_text' || type === 'output_text' || type === 'text') return { type: 'text', text }
    if (type === 'refusal') return { type, refusal }
    if (type === 'input_image' && typeof url === 'string')
      return { type: 'image_url', image_url: { url, ...(typeof detail === 'string' && { detail }) } }
    if (type === 'input_file' && typeof data === 'string')
      return { type: 'file', file: { file_data: data, ...(typeof filename === 'string' && { filename }) } }
  }
  throw new Untranslatable(path)
}
