import type { AnswerReading, Substance } from '../operation.ts'
import { estimateTokens, jsonText } from '../tokens/token-estimate.ts'
import { readResponseUsage } from './responses-usage.ts'

/** An item of a response's `output`, as far as counting needs it. */
export interface OutputItem {
  readonly type?: unknown
  readonly content?: unknown
  readonly summary?: unknown
  readonly encrypted_content?: unknown
  readonly [member: string]: unknown
}

/** A response as an upstream gives it: whole, or as it stands at an event of its stream. */
export interface ResponseObject {
  readonly id?: unknown
  readonly status?: unknown
  readonly error?: unknown
  readonly incomplete_details?: unknown
  readonly output?: unknown
  readonly store?: unknown
  readonly usage?: unknown
}

/** Reads a whole response. Throws SyntaxError when it is not one. */
export function readResponse(json: unknown): AnswerReading {
  const response = json as ResponseObject | null
  if (typeof response !== 'object' || response === null || !Array.isArray(response.output)) {
    throw new SyntaxError('the answer has no "output"')
  }
  const items = itemsOf(response.output)
  return {
    substance: substanceOf(response, items),
    usage: readResponseUsage(response.usage),
    estimateOutput: () => items.reduce((sum, item) => sum + estimateTokens(itemText(item)), 0),
    error: errorOf(response),
    keptId: keptIdOf(response),
  }
}

/** Why a response failed; undefined where it did not. */
export function errorOf({ status, error }: ResponseObject): unknown {
  if (status !== 'failed' && status !== 'cancelled') return undefined
  return error ?? { message: `the response has the status "${status}"` }
}

/** An id longer than this none is known to have, and none is kept. */
const LONGEST_ID = 1024

/** The id under which the upstream keeps a response; undefined where it says that it keeps none. */
export function keptIdOf({ id, store }: ResponseObject): string | undefined {
  const usable = typeof id === 'string' && id !== '' && id.length <= LONGEST_ID
  return usable && store !== false ? id : undefined
}

/** What a response amounts to that has come to its end. */
function substanceOf(response: ResponseObject, items: readonly OutputItem[]): Substance {
  if (items.some(itemRefuses)) return 'refusal'
  if (items.some(itemHasOutput)) return 'output'
  return stoppedByModeration(response) ? 'filtered' : 'empty'
}

/** Whether a response ended early because of what it said. */
export function stoppedByModeration({ incomplete_details: details }: ResponseObject): boolean {
  return isObject(details) && details.reason === 'content_filter'
}

export function itemsOf(output: unknown): readonly OutputItem[] {
  return Array.isArray(output) ? output.filter(isObject) : []
}

/** Whether an item is output: text, a refusal, reasoning that can be read or handed back, or any call of a tool. */
export function itemHasOutput(item: OutputItem): boolean {
  if (item.type === 'message') return partsOf(item.content).some((part) => partText(part) !== '')
  if (item.type === 'reasoning') {
    const isSealed = typeof item.encrypted_content === 'string' && item.encrypted_content !== ''
    return isSealed || reasoningText(item) !== ''
  }
  // Only what a server offers, listed before the model has said anything.
  return item.type !== 'mcp_list_tools'
}

/** Whether the model declines in an item, in its own words. */
export function itemRefuses({ type, content }: OutputItem): boolean {
  return type === 'message' && partsOf(content).some(({ type }) => type === 'refusal')
}

/** The text of an item that is counted as output. */
export function itemText(item: OutputItem): string {
  if (item.type === 'message') return partsOf(item.content).map(partText).join('')
  if (item.type === 'reasoning') return reasoningText(item)
  return callText(item)
}

/** What a model writes of a call: whom it calls, and with what. */
const CALL_MEMBERS = ['name', 'arguments', 'input', 'code', 'action', 'queries', 'operation'] as const

/** The name and the input of a tool call. */
export function callText(item: OutputItem): string {
  return CALL_MEMBERS.map((member) => jsonText(item[member])).join('')
}

function reasoningText({ content, summary }: OutputItem): string {
  return [...partsOf(content), ...partsOf(summary)].map(partText).join('')
}

function partsOf(list: unknown): readonly OutputItem[] {
  return Array.isArray(list) ? list.filter(isObject) : []
}

function partText({ text, refusal }: OutputItem): string {
  if (typeof text === 'string') return text
  return typeof refusal === 'string' ? refusal : ''
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null
}
