import { isJsonObject, type JsonObject, objectsIn } from '../../json/index.ts'
import { hostedTool } from '../requests/hosted-tool.ts'
import { isStrict } from '../requests/strict-schema.ts'
import { asksForSearch, isOpenAiSearch, SEARCH_NAME, searchOfResponse } from '../requests/web-search.ts'
import { type LeaveOut, type RequestContext, refuse } from '../translation.ts'
import { chatName, withoutNamespaces } from './namespaces.ts'

/**
 * Translates the tools and the tool choice of a response request.
 *
 * @throws {Untranslatable} naming the tool or the choice.
 */
export function toolMembers(json: JsonObject, leaveOut: LeaveOut): JsonObject {
  const tools = withoutNamespaces(json.tools).flatMap<JsonObject>(({ tool, path }) =>
    isOpenAiSearch(tool.type) ? [] : (toolOf(tool, path, leaveOut) ?? []),
  )
  const search = objectsIn(json.tools).find(({ type }) => isOpenAiSearch(type))
  const { tool_choice: given, parallel_tool_calls: parallel } = json
  const has = tools.length > 0 || search !== undefined
  const choice =
    has && (given ?? undefined) !== undefined ? choiceOf(given, search !== undefined, leaveOut) : undefined
  return {
    ...(tools.length > 0 && { tools }),
    ...(search && { web_search_options: searchOfResponse(search) }),
    ...(choice !== undefined && { tool_choice: choice }),
    ...(tools.length > 0 && typeof parallel === 'boolean' && { parallel_tool_calls: parallel }),
  }
}

/**
 * Leaves out what an OpenAI-style chat line does not know of a web search: the domains, and that it is chosen.
 *
 * @param json the response request.
 * @param chat what it was translated into.
 */
export function plainSearch(json: JsonObject, chat: JsonObject, context: RequestContext): JsonObject {
  const { leaveOut = refuse } = context
  const { web_search_options: options, tool_choice: choice, ...rest } = chat
  if (!isJsonObject(options)) return chat
  const { filters, ...plain } = options
  const at = objectsIn(json.tools).findIndex(({ type }) => isOpenAiSearch(type))
  const isKnown = asksForSearch(context)
  if (!isKnown) hostedTool(SEARCH_NAME, `tools[${at}]`, leaveOut)
  else if (filters) leaveOut(`tools[${at}].filters`)
  const chosen = isJsonObject(choice) ? choice.type !== SEARCH_NAME : rest.tools !== undefined
  return {
    ...rest,
    ...(isKnown && { web_search_options: plain }),
    ...(choice !== undefined && chosen && { tool_choice: choice }),
  }
}

function toolOf({ type, ...fn }: JsonObject, path: string, leaveOut: LeaveOut): JsonObject | undefined {
  if (type !== 'function') return hostedTool(type, path, leaveOut)
  const { name, description, parameters, strict } = fn
  return {
    type,
    function: {
      name,
      ...(typeof description === 'string' && { description }),
      ...(isJsonObject(parameters) && { parameters }),
      ...(typeof strict === 'boolean' ? { strict } : isDefaultStrict(parameters) && { strict: true }),
    },
  }
}

/** Whether OpenAI treats a function as strict that does not say whether it is. */
function isDefaultStrict(parameters: unknown): boolean {
  return isJsonObject(parameters) && parameters.type === 'object' && isStrict(parameters)
}

function choiceOf(choice: unknown, searches: boolean, leaveOut: LeaveOut): unknown {
  if (typeof choice === 'string') return choice
  if (isJsonObject(choice)) {
    if (choice.type === 'function') return named(choice)
    if (searches && isOpenAiSearch(choice.type)) return { type: SEARCH_NAME }
    if (choice.type === 'allowed_tools') {
      const tools = objectsIn(choice.tools)
        .filter(({ type }) => !isOpenAiSearch(type))
        .map(named)
      return { type: 'allowed_tools', allowed_tools: { mode: choice.mode, tools } }
    }
  }
  leaveOut('tool_choice')
  return undefined
}

const named = ({ name, namespace }: JsonObject): JsonObject => ({
  type: 'function',
  function: { name: chatName(namespace, name) },
})
