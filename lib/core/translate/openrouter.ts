import type { Line } from '../catalog/index.ts'
import { isJsonObject, type JsonObject, objectsIn, someObject } from '../json/index.ts'
import { chatCompletions, type Operation } from '../operations/index.ts'
import { effortMember } from './openai-models.ts'
import { askedEffort, type ReasoningMember } from './reasoning.ts'
import type { RequestContext } from './translation.ts'

/** Providers whose chats have OpenRouter's members, or some of them, by the provider or the host of a line. */
const ROUTERS = /\b(?:openrouter|together|vercel|litellm)\b/i

/** Whether a line knows OpenRouter's members of a chat. */
export function isRouter({ provider, origin }: Pick<Line, 'provider' | 'origin'>): boolean {
  return ROUTERS.test(provider) || ROUTERS.test(origin)
}

/** Whether a chat asks for something in the words of OpenRouter. */
export function speaksOpenRouter({ reasoning, usage }: JsonObject): boolean {
  return isJsonObject(reasoning) || isJsonObject(usage)
}

/** How a caller gets reasoning. */
export interface ReasoningForm {
  /** The member with the text. OpenRouter's clients read it in `reasoning`, and in `reasoning_details`. */
  readonly member: ReasoningMember
  /** Whether the caller wants none. */
  readonly isExcluded: boolean
}

export function reasoningFormOf(request: JsonObject): ReasoningForm {
  const { reasoning } = request
  return {
    member: speaksOpenRouter(request) ? 'reasoning' : 'reasoning_content',
    isExcluded: isJsonObject(reasoning) && reasoning.exclude === true,
  }
}

/** Whether a request is a chat with members that lines other than routers refuse. */
export function hasRouterMembers(operation: Operation, json: JsonObject): boolean {
  return (
    operation === chatCompletions &&
    (speaksOpenRouter(json) || json.session_id !== undefined || marksCache(json))
  )
}

/** Whether a chat says what to cache, in one of the places that {@link withoutCacheControl} looks at. */
function marksCache(json: JsonObject): boolean {
  const { system, messages, tools } = json
  return (
    isMarked(json) ||
    someObject(system, isMarked) ||
    someObject(messages, isMarked) ||
    someObject(tools, isMarked)
  )
}

function isMarked(part: JsonObject): boolean {
  const { content, function: fn } = part
  if (Object.hasOwn(part, CACHE_CONTROL) || (isJsonObject(fn) && Object.hasOwn(fn, CACHE_CONTROL)))
    return true
  return someObject(content, isMarked)
}

const CACHE_CONTROL = 'cache_control'

/** Models that read `cache_control` in a chat, too. */
const TAKES_CACHE_CONTROL = /claude|qwen/i

/** Whether a chat of a model keeps `cache_control`, by the upstream's name. */
export function takesCacheControl(upstreamModel: string): boolean {
  return TAKES_CACHE_CONTROL.test(upstreamModel)
}

/** Returns a chat for lines that are no routers: the effort has OpenAI's form, and what they refuse is left out. */
export function chatWithoutRouterMembers(json: JsonObject, context: RequestContext): JsonObject {
  const { reasoning, usage, session_id: _, ...others } = json
  const rest = takesCacheControl(context.upstreamModel) ? others : withoutCacheControl(others)
  const asked = isJsonObject(reasoning) ? askedEffort(json, context.defaultMaxTokens) : undefined
  const hasFunctions = objectsIn(json.tools).length > 0
  return {
    ...rest,
    ...(usage !== undefined && !isJsonObject(usage) && { usage }),
    ...(reasoning !== undefined && !isJsonObject(reasoning) && { reasoning }),
    ...(asked && rest.reasoning_effort === undefined && effortMember(context, asked, hasFunctions)),
  }
}

/** Returns a request of a chat, or of a message, without its marks of what to cache. */
export function withoutCacheControl(json: JsonObject): JsonObject {
  const { system, messages, tools } = json
  return {
    ...unmarked(json),
    ...(Array.isArray(system) && { system: system.map(unmarkedPart) }),
    ...(Array.isArray(messages) && { messages: messages.map(unmarkedPart) }),
    ...(Array.isArray(tools) && { tools: tools.map(unmarkedPart) }),
  }
}

/** Returns a message, a part or a tool without marks. */
function unmarkedPart(part: unknown): unknown {
  if (!isJsonObject(part)) return part
  const { content, function: fn } = part
  return {
    ...unmarked(part),
    ...(Array.isArray(content) && { content: content.map(unmarkedPart) }),
    ...(isJsonObject(fn) && { function: unmarked(fn) }),
  }
}

function unmarked({ cache_control: _, ...rest }: JsonObject): JsonObject {
  return rest
}
