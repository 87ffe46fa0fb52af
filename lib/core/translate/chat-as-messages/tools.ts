import { isJsonObject, type JsonObject, nonEmptyString, objectsIn } from '../../json/index.ts'
import { Untranslatable } from '../translation.ts'
import { cacheControlOf } from './parts.ts'

/**
 * Translates the tools and the tool choice of a chat into Anthropic's `tools` and `tool_choice`.
 *
 * @throws {Untranslatable} naming the tool or the choice.
 */
export function toolMembers(json: JsonObject): JsonObject {
  const all = objectsIn(json.tools).map((tool, i) => toolOf(tool, `tools[${i}]`))
  if (all.length === 0) return {}
  const { tools, choice } = toolChoice(all, json.tool_choice)
  const serial = json.parallel_tool_calls === false && choice?.type !== 'none'
  const translated = serial ? { type: 'auto', ...choice, disable_parallel_tool_use: true } : choice
  return { tools, ...(translated && { tool_choice: translated }) }
}

function toolOf(tool: JsonObject, path: string): JsonObject {
  const { type, function: given } = tool
  if (type !== 'function' || !isJsonObject(given)) throw new Untranslatable(path)
  const description = nonEmptyString(given.description)
  const cacheControl = cacheControlOf(tool) ?? cacheControlOf(given)
  return {
    name: given.name,
    ...(description !== undefined && { description }),
    input_schema: {
      type: 'object',
      ...(isJsonObject(given.parameters) ? given.parameters : { properties: {} }),
    },
    ...(given.strict === true && { strict: true }),
    ...(cacheControl !== undefined && { cache_control: cacheControl }),
  }
}

interface ToolChoice {
  readonly tools: readonly JsonObject[]
  readonly choice: JsonObject | undefined
}

const CHOICES: Readonly<Record<string, JsonObject>> = {
  auto: { type: 'auto' },
  none: { type: 'none' },
  required: { type: 'any' },
}

function toolChoice(tools: readonly JsonObject[], choice: unknown): ToolChoice {
  if (choice === undefined || choice === null) return { tools, choice: undefined }
  if (typeof choice === 'string' && Object.hasOwn(CHOICES, choice)) return { tools, choice: CHOICES[choice] }
  if (isJsonObject(choice)) {
    const { function: named, allowed_tools: allowed } = choice
    if (choice.type === 'function' && isJsonObject(named))
      return { tools, choice: { type: 'tool', name: named.name } }
    if (choice.type === 'allowed_tools' && isJsonObject(allowed)) return onlyAllowed(tools, allowed)
  }
  throw new Untranslatable('tool_choice')
}

/** Leaves out the tools that are not allowed: Anthropic has no counterpart of `allowed_tools`. */
function onlyAllowed(tools: readonly JsonObject[], allowed: JsonObject): ToolChoice {
  const names = new Set(
    objectsIn(allowed.tools).map(({ function: fn }) => (isJsonObject(fn) ? fn.name : undefined)),
  )
  const allowedTools = tools.filter(({ name }) => names.has(name))
  if (allowedTools.length === 0) throw new Untranslatable('tool_choice.allowed_tools')
  return { tools: allowedTools, choice: allowed.mode === 'required' ? { type: 'any' } : { type: 'auto' } }
}
