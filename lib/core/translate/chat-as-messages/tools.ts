import { isObject, objectsIn, textIn } from '../parts/json-object.ts'
import { type JsonObject, Untranslatable } from '../translation.ts'
import { cacheControlOf } from './parts.ts'

/**
 * The tools of a chat and how they are to be chosen, as Anthropic's `tools` and `tool_choice`.
 *
 * @throws {Untranslatable} naming the tool or the choice.
 */
export function toolMembers(json: JsonObject): JsonObject {
  const all = objectsIn(json.tools).map((tool, i) => toolOf(tool, `tools[${i}]`))
  if (all.length === 0) return {}
  const { tools, choice } = chosen(all, json.tool_choice)
  const alone = json.parallel_tool_calls === false && choice?.type !== 'none'
  const told = alone ? { type: 'auto', ...choice, disable_parallel_tool_use: true } : choice
  return { tools, ...(told && { tool_choice: told }) }
}

function toolOf(tool: JsonObject, path: string): JsonObject {
  const { type, function: given } = tool
  if (type !== 'function' || !isObject(given)) throw new Untranslatable(path)
  const description = textIn(given.description)
  const cacheControl = cacheControlOf(tool) ?? cacheControlOf(given)
  return {
    name: given.name,
    ...(description !== undefined && { description }),
    input_schema: { type: 'object', ...(isObject(given.parameters) ? given.parameters : { properties: {} }) },
    ...(given.strict === true && { strict: true }),
    ...(cacheControl !== undefined && { cache_control: cacheControl }),
  }
}

interface Chosen {
  readonly tools: readonly JsonObject[]
  readonly choice: JsonObject | undefined
}

const CHOICES: Readonly<Record<string, JsonObject>> = {
  auto: { type: 'auto' },
  none: { type: 'none' },
  required: { type: 'any' },
}

function chosen(tools: readonly JsonObject[], choice: unknown): Chosen {
  if (choice === undefined || choice === null) return { tools, choice: undefined }
  if (typeof choice === 'string' && Object.hasOwn(CHOICES, choice)) return { tools, choice: CHOICES[choice] }
  if (isObject(choice)) {
    const { function: named, allowed_tools: allowed } = choice
    if (choice.type === 'function' && isObject(named))
      return { tools, choice: { type: 'tool', name: named.name } }
    if (choice.type === 'allowed_tools' && isObject(allowed)) return onlyAllowed(tools, allowed)
  }
  throw new Untranslatable('tool_choice')
}

/** Anthropic has no word for some of the tools: the others are not shown to the model. */
function onlyAllowed(tools: readonly JsonObject[], allowed: JsonObject): Chosen {
  const names = new Set(
    objectsIn(allowed.tools).map(({ function: fn }) => (isObject(fn) ? fn.name : undefined)),
  )
  const kept = tools.filter(({ name }) => names.has(name))
  if (kept.length === 0) throw new Untranslatable('tool_choice.allowed_tools')
  return { tools: kept, choice: allowed.mode === 'required' ? { type: 'any' } : { type: 'auto' } }
}
