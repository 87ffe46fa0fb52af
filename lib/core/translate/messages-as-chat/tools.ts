import { isJsonObject, type JsonObject, nonEmptyString, objectsIn } from '../../json/index.ts'
import { changedNames, toolName } from '../parts/tool-names.ts'
import { hostedTool } from '../requests/hosted-tool.ts'
import { isStrict } from '../requests/strict-schema.ts'
import { asksForSearch, isAnthropicSearch, searchOfMessage } from '../requests/web-search.ts'
import { type LeaveOut, type RequestContext, refuse } from '../translation.ts'
import { wholeSchema } from './whole-schema.ts'

/**
 * Translates Anthropic's tools and tool choice into `tools`, `tool_choice`, `parallel_tool_calls` and
 * `web_search_options`.
 *
 * @throws {Untranslatable} naming the tool or the choice.
 */
export function toolMembers(json: JsonObject, context: RequestContext): JsonObject {
  const { leaveOut = refuse } = context
  const tools: JsonObject[] = []
  let search: { readonly name: unknown; readonly options: JsonObject | undefined } | undefined
  for (const [i, tool] of objectsIn(json.tools).entries()) {
    const path = `tools[${i}]`
    if (isAnthropicSearch(tool.type)) {
      const options = asksForSearch(context)
        ? searchOfMessage(tool, path, leaveOut)
        : hostedTool(tool.type, path, leaveOut)
      search = { name: tool.name, options }
    } else {
      const translated = functionOf(tool, path, leaveOut)
      if (translated) tools.push(translated)
    }
  }
  return {
    ...(tools.length > 0 && { tools, ...choiceMembers(json.tool_choice, search?.name, leaveOut) }),
    ...(search?.options && { web_search_options: search.options }),
  }
}

/** Returns the caller's names of the tools whose names the line got changed, by the line's. */
export function callersNames({ tools }: JsonObject): ReadonlyMap<unknown, string> {
  return changedNames(objectsIn(tools).map(({ name }) => name))
}

/** @param searching the name of the web search. A chat that has one searches in any case, so that it need not be chosen. */
function choiceMembers(choice: unknown, searching: unknown, leaveOut: LeaveOut): JsonObject {
  if (!isJsonObject(choice)) return {}
  const chosen = choice.type === 'tool' && choice.name === searching ? undefined : choiceOf(choice, leaveOut)
  return {
    ...(chosen && { tool_choice: chosen }),
    ...(choice.disable_parallel_tool_use === true && { parallel_tool_calls: false }),
  }
}

/** Translates a tool into a function. Others have no counterpart: Anthropic runs them, or only its models know them. */
function functionOf(tool: JsonObject, path: string, leaveOut: LeaveOut): JsonObject | undefined {
  const { type, name, input_schema: parameters, strict } = tool
  if (type !== undefined && type !== null && type !== 'custom') return hostedTool(type, path, leaveOut)
  const description = nonEmptyString(tool.description)
  return {
    type: 'function',
    function: {
      name: toolName(name),
      ...(description !== undefined && { description }),
      parameters: wholeSchema(parameters),
      ...(strict === true && isStrict(parameters) && { strict: true }),
    },
  }
}

function choiceOf({ type, name }: JsonObject, leaveOut: LeaveOut): JsonObject | string | undefined {
  switch (type) {
    case 'auto':
    case 'none':
      return type
    case 'any':
      return 'required'
    case 'tool':
      return { type: 'function', function: { name: toolName(name) } }
    default:
      leaveOut('tool_choice')
      return undefined
  }
}
