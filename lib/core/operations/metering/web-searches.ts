import { isJsonObject, type JsonObject, objectsIn, someObject, tokenCount } from '../../json/index.ts'

/** The number of searches that money is held for, for a request that does not say how often it may search. */
const MOST_UNSAID = 10

/** Whether a tool is a web search that the provider runs, in the form of any protocol. */
function isWebSearch({ type }: JsonObject): boolean {
  return typeof type === 'string' && type.startsWith('web_search')
}

/**
 * Returns the most web searches that the provider may run for a request, as far as that is known.
 *
 * @param limit the most calls of all tools, if the request says so.
 */
export function mostWebSearches(tools: unknown, limit?: unknown): number {
  let most = 0
  for (const tool of objectsIn(tools))
    if (isWebSearch(tool)) most += tokenCount(tool.max_uses ?? limit) ?? MOST_UNSAID
  return most
}

/** Returns the most web searches for a chat: OpenAI has a member for them, others have a tool. */
export function mostChatSearches({ web_search_options: options, tools }: JsonObject): number {
  return options ? MOST_UNSAID : mostWebSearches(tools)
}

/**
 * Returns the web searches of an answer that reports no number, for a request that may search. Models that are asked by the
 * member of a chat search in any case; whether a chat's tool was called is not known.
 */
export function unsaidSearches({ web_search_options: options, messages, tools }: JsonObject): number {
  const isChatWithTool = !options && Array.isArray(messages) && someObject(tools, isChatTool)
  return isChatWithTool ? 0 : 1
}

/** The types of Anthropic's searches have a date. */
function isChatTool({ type }: JsonObject): boolean {
  return type === 'web_search'
}

/**
 * Reads the number of web searches in Anthropic-style usage.
 *
 * @see https://docs.anthropic.com/en/docs/agents-and-tools/tool-use/web-search-tool#usage-and-pricing
 */
export function searchesInUsage({ server_tool_use: used }: JsonObject): number | undefined {
  return isJsonObject(used) ? tokenCount(used.web_search_requests) : undefined
}

/** Whether an item of a response is a web search that OpenAI charges: opening a page that was found is not. */
export function isChargedSearch({ type, status, action }: JsonObject): boolean {
  if (type !== 'web_search_call' || status === 'failed') return false
  const kind = isJsonObject(action) ? action.type : undefined
  return kind === undefined || kind === 'search'
}
