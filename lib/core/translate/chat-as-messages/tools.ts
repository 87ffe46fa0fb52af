import { isJsonObject, type JsonObject, nonEmptyString, objectsIn } from '../../json/index.ts'
import { changedNames, LONG, toolName } from '../parts/tool-names.ts'
import { hostedTool } from '../requests/hosted-tool.ts'
import { anthropicSearch, SEARCH_NAME } from '../requests/web-search.ts'
import { type LeaveOut, Untranslatable } from '../translation.ts'
import { fittedSchema } from './fitted-schema.ts'
import { cacheControlOf } from './parts.ts'

/**
 * Translates the tools and the tool choice of a chat into Anthropic's `tools` and `tool_choice`.
 *
 * @throws {Untranslatable} naming the tool or the choice.
 */
export function toolMembers(json: JsonObject, leaveOut: LeaveOut): JsonObject {
  let strict = 0
  const all = objectsIn(json.tools).flatMap<JsonObject>((tool, i) => {
    const translated = toolOf(tool, `tools[${i}]`, strict < MAX_STRICT, leaveOut)
    if (translated?.strict) strict++
    return translated ?? []
  })
  const search = searchTool(json, all, leaveOut)
  if (search) all.push(search)
  if (all.length === 0) return {}
  const { tools, choice } = toolChoice(all, json.tool_choice, leaveOut)
  const serial = json.parallel_tool_calls === false && choice?.type !== 'none'
  const translated = serial ? { type: 'auto', ...choice, disable_parallel_tool_use: true } : choice
  return { tools, ...(translated && { tool_choice: translated }) }
}

/** Anthropic refuses more strict tools. The others are not strict then. */
const MAX_STRICT = 20

function toolOf(
  tool: JsonObject,
  path: string,
  mayBeStrict: boolean,
  leaveOut: LeaveOut,
): JsonObject | undefined {
  const { type, function: given } = asFunction(tool)
  if (type !== 'function') return hostedTool(type, path, leaveOut)
  if (!isJsonObject(given)) throw new Untranslatable(path)
  const description = nonEmptyString(given.description)
  const schema = {
    type: 'object',
    ...(isJsonObject(given.parameters) ? given.parameters : { properties: {} }),
  }
  const strict = given.strict === true && mayBeStrict ? fittedSchema(schema) : undefined
  const cacheControl = cacheControlOf(tool) ?? cacheControlOf(given)
  return {
    name: toolName(given.name, LONG),
    ...(description !== undefined && { description }),
    input_schema: strict ?? schema,
    ...(strict && { strict: true }),
    ...(cacheControl !== undefined && { cache_control: cacheControl }),
  }
}

/** Returns the caller's names of the tools whose names the line got changed, by the line's. */
export function callersNames({ tools }: JsonObject): ReadonlyMap<unknown, string> {
  const names = objectsIn(tools).map((tool) => {
    const { function: given } = asFunction(tool)
    return isJsonObject(given) ? given.name : undefined
  })
  return changedNames(names, LONG)
}

/** Cursor sends the tools of Claude in Anthropic's form, which has no type. */
function asFunction(tool: JsonObject): JsonObject {
  const { type, input_schema: parameters } = tool
  return type === undefined && isJsonObject(parameters)
    ? { type: 'function', function: { ...tool, parameters } }
    : tool
}

/** Returns the web search that a chat asks for; undefined if it does not, or has a function of that name. */
function searchTool(
  { web_search_options: options }: JsonObject,
  tools: readonly JsonObject[],
  leaveOut: LeaveOut,
): JsonObject | undefined {
  if (!isJsonObject(options)) return undefined
  if (tools.every(({ name }) => name !== SEARCH_NAME)) return anthropicSearch(options, leaveOut)
  leaveOut('web_search_options')
  return undefined
}

interface ToolChoice {
  readonly tools: readonly JsonObject[]
  readonly choice: JsonObject | undefined
}

const CHOICES: Readonly<Record<string, JsonObject>> = {
  auto: { type: 'auto' },
  none: { type: 'none' },
  required: { type: 'any' },
  // Mistral's word for it.
  any: { type: 'any' },
}

function toolChoice(tools: readonly JsonObject[], choice: unknown, leaveOut: LeaveOut): ToolChoice {
  if (choice === undefined || choice === null) return { tools, choice: undefined }
  // Cursor sends the word as the type of an object.
  const word = isJsonObject(choice) ? choice.type : choice
  if (typeof word === 'string' && Object.hasOwn(CHOICES, word)) return { tools, choice: CHOICES[word] }
  if (isJsonObject(choice)) {
    const { function: named, allowed_tools: allowed } = choice
    if (choice.type === 'function' && isJsonObject(named))
      return { tools, choice: { type: 'tool', name: toolName(named.name, LONG) } }
    if (choice.type === SEARCH_NAME && tools.some(({ name }) => name === SEARCH_NAME))
      return { tools, choice: { type: 'tool', name: SEARCH_NAME } }
    if (choice.type === 'allowed_tools' && isJsonObject(allowed)) return onlyAllowed(tools, allowed)
  }
  leaveOut('tool_choice')
  return { tools, choice: undefined }
}

/** Leaves out the tools that are not allowed: Anthropic has no counterpart of `allowed_tools`. */
function onlyAllowed(tools: readonly JsonObject[], allowed: JsonObject): ToolChoice {
  const names = new Set(
    objectsIn(allowed.tools).map(({ function: fn }) =>
      isJsonObject(fn) ? toolName(fn.name, LONG) : undefined,
    ),
  )
  const allowedTools = tools.filter(({ name }) => names.has(name))
  if (allowedTools.length === 0) throw new Untranslatable('tool_choice.allowed_tools')
  return { tools: allowedTools, choice: allowed.mode === 'required' ? { type: 'any' } : { type: 'auto' } }
}
