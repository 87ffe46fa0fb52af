import { isJsonObject, type JsonObject, type JsonTally, nonEmptyString, objectsIn } from '../../json/index.ts'
import { freeformFunction, freeformInput, freeformText } from '../freeform-tools.ts'
import { hostedTool } from '../member-rules.ts'
import { toolArguments, toolInput } from '../tool-calls.ts'
import { changedNames, LONG, toolName } from '../tool-ids.ts'
import { type LeaveOut, Untranslatable } from '../translation.ts'
import { anthropicSearch, isOffline, SEARCH_NAME } from '../web-search.ts'
import { takesForcedTool } from './claude-models.ts'
import { fittedSchema } from './response-format.ts'

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

/** The tools of a chat, as far as calls differ for the caller and for the line. */
export interface CallersTools {
  /** The caller's names of the tools whose names the line got changed, by the line's. */
  readonly names: ReadonlyMap<unknown, string>
  /** The caller's names of the tools that take a text. */
  readonly freeform: ReadonlySet<unknown>
}

export function callersTools({ tools }: JsonObject): CallersTools {
  const given = objectsIn(tools)
  const names = given.map((tool) => {
    const { function: fn } = asFunction(tool)
    return isJsonObject(fn) ? fn.name : undefined
  })
  const freeform = given.flatMap(({ type, custom }) => (isFreeform(type, custom) ? [custom.name] : []))
  return { names: changedNames(names, LONG), freeform: new Set(freeform) }
}

function isFreeform(type: unknown, custom: unknown): custom is JsonObject {
  return type === 'custom' && isJsonObject(custom) && typeof custom.name === 'string'
}

/** Returns a freeform tool as a function. Cursor sends the tools of Claude in Anthropic's form, which has no type. */
function asFunction(tool: JsonObject): JsonObject {
  const { type, custom, input_schema: parameters } = tool
  if (isFreeform(type, custom)) return { ...tool, type: 'function', function: freeformFunction(custom) }
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
  if (!isOffline(options) && tools.every(({ name }) => name !== SEARCH_NAME))
    return anthropicSearch(options, leaveOut)
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
    const { allowed_tools: allowed } = choice
    const name = chosenName(choice)
    if (name !== undefined) return { tools, choice: { type: 'tool', name } }
    if (choice.type === SEARCH_NAME && tools.some(({ name }) => name === SEARCH_NAME))
      return { tools, choice: { type: 'tool', name: SEARCH_NAME } }
    if (choice.type === 'allowed_tools' && isJsonObject(allowed)) return onlyAllowed(tools, allowed)
  }
  leaveOut('tool_choice')
  return { tools, choice: undefined }
}

/** Returns the name of a tool that a choice names; undefined for any other choice. */
function chosenName({ type, function: fn, custom }: JsonObject): unknown {
  const named = type === 'custom' ? custom : type === 'function' ? fn : undefined
  return isJsonObject(named) ? toolName(named.name, LONG) : undefined
}

/** Leaves out the tools that are not allowed: Anthropic has no counterpart of `allowed_tools`. */
function onlyAllowed(tools: readonly JsonObject[], allowed: JsonObject): ToolChoice {
  const names = new Set(
    objectsIn(allowed.tools).map(({ type = 'function', ...named }) => chosenName({ type, ...named })),
  )
  const allowedTools = tools.filter(({ name }) => names.has(name))
  if (allowedTools.length === 0) throw new Untranslatable('tool_choice.allowed_tools')
  return { tools: allowedTools, choice: allowed.mode === 'required' ? { type: 'any' } : { type: 'auto' } }
}

/** The members of a message request about tools, and the instruction that stands for what they cannot say. */
interface AskedTools {
  readonly tools: JsonObject
  readonly instruction?: string
}

/**
 * Asks in words for the call of a tool, for models that no request can force to one. A tool that was chosen by its name is
 * the only one then.
 *
 * @param members what {@link toolMembers} returned.
 */
export function askedTools(members: JsonObject, upstreamModel: string): AskedTools {
  const { tools, tool_choice: choice } = members
  const { type, name, ...rest } = isJsonObject(choice) ? choice : {}
  if ((type !== 'any' && type !== 'tool') || takesForcedTool(upstreamModel)) return { tools: members }
  const asked = { ...members, tool_choice: { ...rest, type: 'auto' } }
  if (type === 'any') return { tools: asked, instruction: 'Call at least one of the tools in your answer.' }
  return {
    tools: { ...asked, tools: objectsIn(tools).filter((tool) => tool.name === name) },
    instruction: `Call the tool ${String(name)} in your answer.`,
  }
}

/** Translates an entry of `tool_calls` into a `tool_use` block, which has the caller's id. */
export function toolUseOf(call: JsonObject, path: string, tally: JsonTally): JsonObject {
  const { id, type, custom } = call
  const fn = isFreeform(type, custom)
    ? { name: custom.name, arguments: freeformInput(custom.input) }
    : call.function
  if (!isJsonObject(fn) || typeof fn.name !== 'string') throw new Untranslatable(path)
  if (typeof id !== 'string') throw new Untranslatable(`${path}.id`)
  const input = toolInput(fn.arguments, tally)
  if (!input) throw new Untranslatable(`${path}.function.arguments`)
  return { type: 'tool_use', id, name: toolName(fn.name, LONG), input }
}

/** Returns the `cache_control` of a part; OpenAI's `prompt_cache_breakpoint` counts as one. */
export function cacheControlOf(part: JsonObject): unknown {
  if (isJsonObject(part.cache_control)) return part.cache_control
  return isJsonObject(part.prompt_cache_breakpoint) ? { type: 'ephemeral' } : undefined
}

/**
 * Translates a `tool_use` block of an answer into an entry of `tool_calls`.
 *
 * @param id the caller's id of the call.
 * @param tools the caller's tools.
 */
export function toolCallOf({ name: given, input }: JsonObject, id: string, tools: CallersTools): JsonObject {
  const name = tools.names.get(given) ?? given
  if (tools.freeform.has(name)) return { id, type: 'custom', custom: { name, input: freeformText(input) } }
  return { id, type: 'function', function: { name, arguments: inputText(input) } }
}

/** Returns the input of a call as JSON; `{}` if it is not an object, as OpenAI sends it for a call without arguments. */
export function inputText(input: unknown): string {
  return toolInput(input) ? toolArguments(input) : '{}'
}
