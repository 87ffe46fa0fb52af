import { isJsonObject, type JsonObject, nonEmptyString } from '../json/index.ts'
import type { LeaveOut } from './translation.ts'

/** The version of Anthropic's web search that all its models have. */
const ANTHROPIC_SEARCH = 'web_search_20250305'

/** The name by which Anthropic's models call their web search. */
export const SEARCH_NAME = 'web_search'

/**
 * A web search in the members of a chat's `web_search_options`, with the domains of a response's tool: `filters` is no
 * member of a chat.
 */
type SearchOptions = JsonObject

/**
 * Whether a model takes `web_search_options`, by the upstream's name. OpenAI's models without "search" in it, and most other
 * providers, refuse them.
 */
export function takesSearch(upstreamModel: string): boolean {
  return /search|sonar|:online/.test(upstreamModel)
}

/** Whether a web search may only read what its provider has stored. No other line has such a search. */
export function isOffline({ external_web_access: access }: JsonObject): boolean {
  return access === false
}

/** Whether a tool is OpenAI's web search, in any of its versions. */
export function isOpenAiSearch(type: unknown): boolean {
  return typeof type === 'string' && /^web_search(?:_preview)?(?:_\d{4}_\d\d_\d\d)?$/.test(type)
}

/** Whether a tool is Anthropic's web search, in any of its versions. */
export function isAnthropicSearch(type: unknown): boolean {
  return typeof type === 'string' && /^web_search_\d{8}$/.test(type)
}

/** Returns the web search of a response request as that of a chat. */
export function searchOfResponse(tool: JsonObject): SearchOptions {
  const { search_context_size: size, user_location: location, filters } = tool
  const place = placeOf(location)
  const domains = isJsonObject(filters) ? domainsOf(filters) : {}
  return {
    ...(typeof size === 'string' && { search_context_size: size }),
    ...(place && { user_location: { type: 'approximate', approximate: place } }),
    ...(Object.keys(domains).length > 0 && { filters: domains }),
  }
}

/**
 * Returns Anthropic's web search as that of a chat, which has no counterpart for domains. How often the model may search
 * concerns the cost only.
 */
export function searchOfMessage(tool: JsonObject, path: string, leaveOut: LeaveOut): SearchOptions {
  for (const member in domainsOf(tool)) leaveOut(`${path}.${member}`)
  const place = placeOf(tool.user_location)
  return place ? { user_location: { type: 'approximate', approximate: place } } : {}
}

/** Returns a web search as a tool of Anthropic's, which takes domains to search or to leave out, but not both. */
export function anthropicSearch(options: SearchOptions, leaveOut: LeaveOut): JsonObject {
  const { user_location: location, filters } = options
  const place = isJsonObject(location) ? placeOf(location.approximate) : undefined
  const { allowed_domains: allowed, blocked_domains: blocked } = isJsonObject(filters)
    ? domainsOf(filters)
    : {}
  if (allowed && blocked) leaveOut('web_search_options.filters.blocked_domains')
  return {
    type: ANTHROPIC_SEARCH,
    name: SEARCH_NAME,
    ...(allowed && { allowed_domains: allowed }),
    ...(blocked && !allowed && { blocked_domains: blocked }),
    ...(place && { user_location: { type: 'approximate', ...place } }),
  }
}

interface Domains {
  readonly allowed_domains?: readonly unknown[]
  readonly blocked_domains?: readonly unknown[]
}

function domainsOf({ allowed_domains: allowed, blocked_domains: blocked }: JsonObject): Domains {
  return {
    ...(Array.isArray(allowed) && allowed.length > 0 && { allowed_domains: allowed }),
    ...(Array.isArray(blocked) && blocked.length > 0 && { blocked_domains: blocked }),
  }
}

/** Returns the members of an approximate place; undefined if there are none. */
function placeOf(location: unknown): JsonObject | undefined {
  if (!isJsonObject(location)) return undefined
  const members = ['city', 'region', 'country', 'timezone'].flatMap((member) => {
    const value = nonEmptyString(location[member])
    return value === undefined ? [] : [[member, value]]
  })
  return members.length > 0 ? Object.fromEntries(members) : undefined
}
