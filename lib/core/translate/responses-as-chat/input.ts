import { isObject, objectsIn, textIn } from '../parts/json-object.ts'
import { chatResult } from '../parts/result-parts.ts'
import { toolId } from '../parts/tool-ids.ts'
import { type JsonObject, Untranslatable } from '../translation.ts'
import { isOfChat } from './foreign-reasoning.ts'
import { openSeal } from './sealed-reasoning.ts'

/**
 * The input of a response request as the messages of a chat.
 *
 * @throws {Untranslatable} naming the item, or the part of one, without a counterpart.
 */
export function inputMessages(input: unknown): readonly JsonObject[] {
  if (typeof input === 'string') return [{ role: 'user', content: input }]
  const chat = new ChatInput()
  for (const [i, item] of (Array.isArray(input) ? input : []).entries()) chat.add(item, `input[${i}]`)
  return chat.end()
}

/** Puts together what a chat has in one message and a response in several items: what was thought, said and called. */
class ChatInput {
  readonly #messages: JsonObject[] = []
  #assistant: Record<string, unknown> | undefined
  /** What results hold beside text: it follows the last of them. */
  #shown: JsonObject[] = []

  add(item: unknown, path: string): void {
    if (!isObject(item)) throw new Untranslatable(path)
    if (item.type !== 'function_call_output') this.#show()
    switch (item.type ?? 'message') {
      case 'message':
        if (item.role === 'assistant') this.#say(item, path)
        else this.#hear(item, path)
        break
      case 'function_call':
        this.#call(item)
        break
      case 'function_call_output':
        this.#result(item, path)
        break
      case 'reasoning':
        this.#think(item)
        break
      default:
        throw new Untranslatable(path)
    }
  }

  end(): readonly JsonObject[] {
    this.#close()
    this.#show()
    return this.#messages
  }

  #close(): void {
    const turn = this.#assistant
    this.#assistant = undefined
    // Thinking that led to nothing is nothing a chat can hold.
    if (turn && (turn.content !== null || turn.tool_calls !== undefined)) this.#messages.push(turn)
  }

  #show(): void {
    if (this.#shown.length > 0) this.#messages.push({ role: 'user', content: this.#shown })
    this.#shown = []
  }

  #turn(): Record<string, unknown> {
    this.#assistant ??= { role: 'assistant', content: null }
    return this.#assistant
  }

  #hear({ role, content }: JsonObject, path: string): void {
    this.#close()
    const said = plainText(chatContent(content, `${path}.content`))
    // Instructions too: most lines that only speak chat completions know no developer.
    this.#messages.push({ role: role === 'developer' ? 'system' : role, content: said })
  }

  #say({ content }: JsonObject, path: string): void {
    const turn = this.#turn()
    const said = chatContent(content, `${path}.content`)
    turn.content = plainText([...asParts(turn.content), ...asParts(said)], '')
  }

  #call({ call_id: id, name, arguments: args }: JsonObject): void {
    const turn = this.#turn()
    const called = { name, arguments: typeof args === 'string' ? args : '{}' }
    const call = { id: toolId(String(id)), type: 'function', function: called }
    turn.tool_calls = [...objectsIn(turn.tool_calls), call]
  }

  #result({ call_id: id, output }: JsonObject, path: string): void {
    this.#close()
    const parts = asParts(chatContent(output, `${path}.output`))
    const { message, shown } = chatResult(toolId(String(id)), parts)
    this.#messages.push(message)
    this.#shown.push(...shown)
  }

  /**
   * A chat has the reasoning of a turn in one text, whatever was said or called in between. Of what another kind of line
   * thought there is only a summary, which says nothing to this one.
   */
  #think(item: JsonObject): void {
    if (item.id !== undefined && item.id !== null && !isOfChat(item.id)) return
    const turn = this.#turn()
    const parts = objectsIn(item.content).length > 0 ? item.content : item.summary
    const thought = objectsIn(parts).map(({ text }) => textIn(text) ?? '')
    const sealed = openSeal(item.encrypted_content)
    const reasoning = `${textIn(turn[sealed.member]) ?? ''}${thought.join('')}`
    if (reasoning !== '') turn[sealed.member] = reasoning
    const details = [...objectsIn(turn.reasoning_details), ...sealed.details]
    if (details.length > 0) turn.reasoning_details = details
  }
}

const asParts = (content: unknown): readonly JsonObject[] =>
  typeof content === 'string' ? [{ type: 'text', text: content }] : objectsIn(content)

/**
 * Texts as one, because some upstreams take nothing else.
 *
 * @param between what stands between several; without it they stay parts.
 */
function plainText(
  content: string | readonly JsonObject[],
  between?: string,
): string | readonly JsonObject[] {
  if (typeof content === 'string' || content.some(({ type }) => type !== 'text')) return content
  if (between === undefined && content.length > 1) return content
  return content.map(({ text }) => textIn(text) ?? '').join(between)
}

function chatContent(content: unknown, path: string): string | readonly JsonObject[] {
  if (typeof content === 'string') return content
  if (!Array.isArray(content)) throw new Untranslatable(path)
  return content.map((part: unknown, i) => chatPart(part, `${path}[${i}]`))
}

function chatPart(part: unknown, path: string): JsonObject {
  if (isObject(part)) {
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
