import { isJsonObject, type JsonObject, type JsonTally, nonEmptyString, objectsIn } from '../../json/index.ts'
import { hostedTool } from '../member-rules.ts'
import { isStrict } from '../openai-models.ts'
import { toolArguments, toolInput } from '../tool-calls.ts'
import { changedNames, sealOf, toolName } from '../tool-ids.ts'
import { type LeaveOut, type RequestContext, refuse, Untranslatable } from '../translation.ts'
import { isAnthropicSearch, searchOfMessage, takesSearch } from '../web-search.ts'

/**
 * Translates Anthropic's tools and tool choice into `tools`, `tool_choice`, `parallel_tool_calls` and
 * `web_search_options`.
 *
 * @throws {Untranslatable} naming the tool or the choice.
 */
export function toolMembers(json: JsonObject, context: RequestContext): JsonObject {
  const { upstreamModel, leaveOut = refuse } = context
  const tools: JsonObject[] = []
  let search: { readonly name: unknown; readonly options: JsonObject | undefined } | undefined
  for (const [i, tool] of objectsIn(json.tools).entries()) {
    const path = `tools[${i}]`
    if (isAnthropicSearch(tool.type)) {
      const options = takesSearch(upstreamModel)
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
    ...(isJsonObject(tool.cache_control) && { cache_control: tool.cache_control }),
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

/** Keywords whose value is a schema, or a list of schemas. */
const SCHEMAS: ReadonlySet<string> = new Set([
  'additionalProperties',
  'allOf',
  'anyOf',
  'items',
  'oneOf',
  'prefixItems',
])

/** Keywords whose value is a schema for each name. */
const NAMED: ReadonlySet<string> = new Set(['$defs', 'definitions', 'properties'])

/**
 * Returns the schema of a function's arguments with the members that OpenAI demands and Anthropic does not: `properties`,
 * and `items` of each array. They are empty, so that they allow what was allowed before.
 */
function wholeSchema(schema: unknown): JsonObject {
  return { type: 'object', properties: {}, ...(isJsonObject(schema) && (withItems(schema) as JsonObject)) }
}

function withItems(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(withItems)
  if (!isJsonObject(schema)) return schema
  const members = Object.entries(schema).map(([keyword, value]) => {
    if (SCHEMAS.has(keyword)) return [keyword, withItems(value)]
    if (!NAMED.has(keyword) || !isJsonObject(value)) return [keyword, value]
    return [keyword, Object.fromEntries(Object.entries(value).map(([name, one]) => [name, withItems(one)]))]
  })
  const { type, items } = schema
  const isArray = type === 'array' || (Array.isArray(type) && type.includes('array'))
  return { ...Object.fromEntries(members), ...(isArray && items === undefined && { items: {} }) }
}

/**
 * Translates a `tool_use` block of the assistant into an entry of `tool_calls`, which has the caller's id.
 *
 * @param tally the total of the ids and the inputs of the same request so far.
 */
export function toolCallOf({ id, name, input }: JsonObject, path: string, tally: JsonTally): JsonObject {
  if (typeof id !== 'string') throw new Untranslatable(`${path}.id`)
  if (typeof name !== 'string') throw new Untranslatable(`${path}.name`)
  if (!toolInput(input, tally)) throw new Untranslatable(`${path}.input`)
  const fn = { name: toolName(name), arguments: toolArguments(input) }
  return { id, type: 'function', function: fn, ...sealOf(id, tally) }
}

/**
 * Translates an entry of `tool_calls` of an answer into a `tool_use` block; returns nothing for tools of other types, which
 * the caller cannot have.
 *
 * @throws {SyntaxError} if the complete arguments are not a JSON object.
 */
export function toolUseOf(
  call: JsonObject,
  id: string,
  cutOff: boolean,
  names: ReadonlyMap<unknown, string>,
): JsonObject[] {
  const { function: fn } = call
  if (!isJsonObject(fn) || typeof fn.name !== 'string') return []
  const { name, arguments: given } = fn
  const input = toolInput(given)
  // A call whose arguments were cut off cannot be run; the caller sees it by the stop reason.
  if (!input && !cutOff) throw new SyntaxError('the arguments of a tool call are not a JSON object')
  return [{ type: 'tool_use', id, name: names.get(name) ?? name, input: input ?? {} }]
}
