import { isJsonObject, type JsonObject, objectsIn } from '../../json/index.ts'
import { freeformFunction } from '../freeform-tools.ts'
import { hostedTool } from '../member-rules.ts'
import { isStrict } from '../openai-models.ts'
import { toolName } from '../tool-ids.ts'
import { type LeaveOut, type RequestContext, refuse, Untranslatable } from '../translation.ts'
import { isOffline, isOpenAiSearch, SEARCH_NAME, searchOfResponse, takesSearch } from '../web-search.ts'

/**
 * Translates the tools and the tool choice of a response request.
 *
 * @throws {Untranslatable} naming the tool or the choice.
 */
export function toolMembers(json: JsonObject, leaveOut: LeaveOut): JsonObject {
  const tools = withoutNamespaces(json.tools).flatMap<JsonObject>(({ tool, path }) =>
    isLiveSearch(tool) ? [] : (toolOf(tool, path, leaveOut) ?? []),
  )
  const search = objectsIn(json.tools).find(isLiveSearch)
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

function isLiveSearch(tool: JsonObject): boolean {
  return isOpenAiSearch(tool.type) && !isOffline(tool)
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
  const given = objectsIn(json.tools)
  const at = given.findIndex(isLiveSearch)
  const isKnown = takesSearch(context.upstreamModel)
  if (!isKnown) hostedTool(given[at]?.type, `tools[${at}]`, leaveOut)
  else if (filters) leaveOut(`tools[${at}].filters`)
  const chosen = isJsonObject(choice) ? choice.type !== SEARCH_NAME : rest.tools !== undefined
  return {
    ...rest,
    ...(isKnown && { web_search_options: plain }),
    ...(choice !== undefined && chosen && { tool_choice: choice }),
  }
}

function toolOf({ type, ...fn }: JsonObject, path: string, leaveOut: LeaveOut): JsonObject | undefined {
  if (type === FREEFORM && typeof fn.name === 'string')
    return { type: 'function', function: freeformFunction(fn) }
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

const CHOICES: ReadonlySet<unknown> = new Set(['none', 'auto', 'required'])

function choiceOf(choice: unknown, searches: boolean, leaveOut: LeaveOut): unknown {
  if (typeof choice === 'string' && CHOICES.has(choice)) return choice
  if (isJsonObject(choice)) {
    if (choice.type === 'function' || choice.type === FREEFORM) return named(choice)
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

/** The type of tools that take a text. */
const FREEFORM = 'custom'

/** A tool as the caller of a response knows it. */
export interface CallersTool {
  readonly called: { readonly name: unknown; readonly namespace?: unknown }
  /** Whether it takes a text. */
  readonly isFreeform: boolean
}

/** Returns the name that a function has in a chat, which has no namespaces, and shorter names. */
export function chatName(namespace: unknown, name: unknown): unknown {
  return toolName(namespace ? `${String(namespace)}__${String(name)}` : name)
}

/** Returns the tools of a response request by their names in a chat. */
export function callersTools({ tools }: JsonObject): ReadonlyMap<unknown, CallersTool> {
  const byName = new Map<unknown, CallersTool>()
  const add = ({ type, name }: JsonObject, namespace?: unknown): void => {
    const called = { name, ...(namespace !== undefined && { namespace }) }
    byName.set(chatName(namespace, name), { called, isFreeform: type === FREEFORM })
  }
  for (const tool of objectsIn(tools)) {
    if (tool.type === 'namespace') for (const one of objectsIn(tool.tools)) add(one, tool.name)
    else if (tool.type === 'function' || tool.type === FREEFORM) add(tool)
  }
  return byName
}

/** It is written before the name of each of its functions. OpenAI's are shorter. */
const MAX_NAMESPACE_LENGTH = 256

/**
 * Returns the tools of a request with the functions of its namespaces in place of these.
 *
 * @throws {Untranslatable} naming a namespace that is too long.
 */
function withoutNamespaces(tools: unknown): { readonly tool: JsonObject; readonly path: string }[] {
  return objectsIn(tools).flatMap((tool, i) => {
    const path = `tools[${i}]`
    const { type, name: namespace, tools: functions } = tool
    if (type !== 'namespace' || !Array.isArray(functions))
      return [{ tool: { ...tool, name: chatName(undefined, namespace) }, path }]
    if (String(namespace).length > MAX_NAMESPACE_LENGTH) throw new Untranslatable(`${path}.name`)
    return functions.flatMap((one: unknown, j) =>
      isJsonObject(one)
        ? [{ tool: { ...one, name: chatName(namespace, one.name) }, path: `${path}.tools[${j}]` }]
        : [],
    )
  })
}
