import { isJsonObject, type JsonObject, newTally, nonEmptyString, objectsIn } from '../../json/index.ts'
import { chatToolResult } from '../chat-content.ts'
import { freeformInput } from '../freeform-tools.ts'
import { withoutLeftOut } from '../member-rules.ts'
import type { ReasoningMember } from '../reasoning.ts'
import { eachCallOnce, resultsBehindCalls, type ToolRole, toolArguments } from '../tool-calls.ts'
import { chatToolId, sealOf } from '../tool-ids.ts'
import { type LeaveOut, type RequestContext, refuse, Untranslatable } from '../translation.ts'
import { decodeReasoning, isFromChat } from './reasoning.ts'
import { chatName } from './tools.ts'

/**
 * Translates the input of a response request into the messages of a chat.
 *
 * @throws {Untranslatable} naming the item, or the part of an item, that has no counterpart.
 */
export function inputMessages(input: unknown, context: RequestContext): readonly JsonObject[] {
  if (typeof input === 'string') return [{ role: 'user', content: input }]
  const items: unknown[] = Array.isArray(input) ? input : []
  const placed = items.map((item, i) => ({ item, path: `input[${i}]` }))
  const chat = new ChatInput(context)
  for (const { item, path } of resultsBehindCalls(placed, ({ item }) => roleOf(item))) chat.add(item, path)
  return chat.end()
}

const OUTPUT = /_output$/

/** Everything but messages and outputs is a part of the assistant's turn. */
function roleOf(item: unknown): ToolRole {
  const { type, role, call_id: id } = isJsonObject(item) ? item : {}
  if (OUTPUT.test(String(type))) return { isAssistants: false, resultOf: id }
  const isMessage = (type ?? 'message') === 'message'
  return { isAssistants: !isMessage || role === 'assistant', calls: isMessage ? [] : [id] }
}

const HOSTED_CALL = /^(?:mcp_\w+|(?:file_search|code_interpreter|image_generation|tool_search)_call)$/

/** An assistant's turn, which becomes one message. */
interface AssistantTurn {
  /** One text, or parts if there is anything else; null without content. */
  content: string | JsonObject[] | null
  readonly reasoning: { [member in ReasoningMember]?: string }
  readonly details: JsonObject[]
  readonly calls: Call[]
}

interface Call {
  /** The caller's id. */
  readonly id: unknown
  readonly name: unknown
  readonly input: unknown
  /** The entry of `tool_calls`. */
  readonly entry: JsonObject
}

/**
 * Collects the messages of a chat. Reasoning, text and tool calls of one assistant turn are several items of a response
 * and one message of a chat.
 */
class ChatInput {
  readonly #messages: JsonObject[] = []
  #assistant: AssistantTurn | undefined
  /** Images and files of tool results: they follow the last result. */
  #attachments: JsonObject[] = []
  /** The size of the encoded reasoning of all items. */
  readonly #tally = newTally()
  readonly #leaveOut: LeaveOut
  readonly #upstreamModel: string

  constructor({ upstreamModel, leaveOut = refuse }: RequestContext) {
    this.#leaveOut = leaveOut
    this.#upstreamModel = upstreamModel
  }

  add(item: unknown, path: string): void {
    if (!isJsonObject(item)) throw new Untranslatable(path)
    if (!isOutput(item)) this.#addAttachments()
    switch (item.type ?? 'message') {
      case 'message':
        if (item.role === 'assistant') this.#addText(item, path)
        else this.#addMessage(item, path)
        break
      case 'function_call':
        this.#addCall(item, path)
        break
      case 'custom_tool_call':
        this.#addCall({ ...item, arguments: freeformInput(item.input) }, path)
        break
      case 'function_call_output':
      case 'custom_tool_call_output':
        this.#addResult(item, path)
        break
      case 'reasoning':
        this.#addReasoning(item)
        break
      case 'web_search_call':
        // The text of the model has the result of the search.
        break
      default:
        this.#leaveCallOut(item, path)
    }
  }

  /** Leaves out what a tool did that the upstream ran itself. All other items hold a part of the conversation. */
  #leaveCallOut({ type }: JsonObject, path: string): void {
    const what = `the item ${JSON.stringify(String(type).slice(0, 64))}`
    if (!HOSTED_CALL.test(String(type))) throw new Untranslatable(path, what)
    this.#leaveOut(path, what)
  }

  end(): readonly JsonObject[] {
    this.#endTurn()
    this.#addAttachments()
    return this.#messages
  }

  #endTurn(): void {
    const turn = this.#assistant
    this.#assistant = undefined
    if (!turn) return
    const { content, reasoning, details } = turn
    const calls = eachCallOnce(turn.calls, (call) => call).map(({ entry }) => entry)
    // A chat has no message that holds reasoning only.
    if (content === null && calls.length === 0) return
    this.#messages.push({
      role: 'assistant',
      content,
      ...reasoning,
      ...(details.length > 0 && { reasoning_details: details }),
      ...(calls.length > 0 && { tool_calls: calls }),
    })
  }

  #addAttachments(): void {
    if (this.#attachments.length > 0) this.#messages.push({ role: 'user', content: this.#attachments })
    this.#attachments = []
  }

  #turn(): AssistantTurn {
    this.#assistant ??= { content: null, reasoning: {}, details: [], calls: [] }
    return this.#assistant
  }

  #addMessage({ role, content }: JsonObject, path: string): void {
    this.#endTurn()
    const given = chatContent(content, `${path}.content`, this.#leaveOut)
    const [only, ...others] = asParts(given)
    // Some upstreams accept nothing but a text. Several texts stay parts.
    const translated =
      only?.type === 'text' && others.length === 0 ? (nonEmptyString(only.text) ?? '') : given
    // Most lines without `responses` do not know the role `developer`.
    this.#messages.push({ role: role === 'developer' ? 'system' : role, content: translated })
  }

  #addText({ content }: JsonObject, path: string): void {
    const turn = this.#turn()
    const parts = asParts(chatContent(content, `${path}.content`, this.#leaveOut))
    if (!Array.isArray(turn.content) && areTexts(parts)) turn.content = (turn.content ?? '') + textOf(parts)
    else {
      if (!Array.isArray(turn.content)) turn.content = turn.content === null ? [] : [...asParts(turn.content)]
      turn.content.push(...parts)
    }
  }

  #addCall({ call_id: id, name, namespace, arguments: given }: JsonObject, path: string): void {
    // Some callers keep the arguments parsed.
    if (typeof given === 'object' ? Array.isArray(given) : typeof given !== 'string' && given !== undefined)
      throw new Untranslatable(`${path}.arguments`)
    const fn = { name: chatName(namespace, name), arguments: toolArguments(given) }
    const seal = sealOf(String(id), this.#tally)
    const callId = chatToolId(String(id), this.#upstreamModel)
    const entry = { id: callId, type: 'function', function: fn, ...seal }
    this.#turn().calls.push({ id, name: fn.name, input: fn.arguments, entry })
  }

  #addResult({ call_id: id, output }: JsonObject, path: string): void {
    this.#endTurn()
    const parts = asParts(chatContent(output, `${path}.output`, this.#leaveOut))
    const label = chatToolId(String(id), this.#upstreamModel)
    const { message, attachments } = chatToolResult({ id: label, label }, parts)
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
    const { details, member, text: sealed } = decodeReasoning(item.encrypted_content, this.#tally)
    const text = sealed === '' ? textOf(objectsIn(parts)) : sealed
    const reasoning = (turn.reasoning[member] ?? '') + text
    if (reasoning !== '') turn.reasoning[member] = reasoning
    for (const detail of details) turn.details.push(detail)
  }
}

const isOutput = ({ type }: JsonObject): boolean =>
  type === 'function_call_output' || type === 'custom_tool_call_output'

const asParts = (content: unknown): readonly JsonObject[] =>
  typeof content === 'string' ? [{ type: 'text', text: content }] : objectsIn(content)

const areTexts = (parts: readonly JsonObject[]): boolean => parts.every(({ type }) => type === 'text')

const textOf = (parts: readonly JsonObject[]): string =>
  parts.map(({ text }) => nonEmptyString(text)).join('')

function chatContent(content: unknown, path: string, leaveOut: LeaveOut): string | readonly JsonObject[] {
  if (typeof content === 'string') return content
  if (!Array.isArray(content)) throw new Untranslatable(path)
  return withoutLeftOut(content, path, leaveOut, chatPart)
}

function chatPart(part: unknown, path: string, leaveOut: LeaveOut): JsonObject | readonly JsonObject[] {
  if (isJsonObject(part)) {
    const { type, text, refusal, image_url: url, detail, file_data: data, filename } = part
    if (type === 'input_text' || type === 'output_text' || type === 'text') return { type: 'text', text }
    if (type === 'refusal') return { type, refusal }
    if (type === 'input_image' && typeof url === 'string')
      return { type: 'image_url', image_url: { url, ...(typeof detail === 'string' && { detail }) } }
    if (type === 'input_file' && typeof data === 'string')
      return { type: 'file', file: { file_data: data, ...(typeof filename === 'string' && { filename }) } }
  }
  leaveOut(path)
  return []
}
