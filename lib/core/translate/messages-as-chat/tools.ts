import { isObject, objectsIn, textIn } from '../parts/json-object.ts'
import { type JsonObject, Untranslatable } from '../translation.ts'

/**
 * Anthropic's tools and how they are to be chosen, as a chat's `tools`, `tool_choice` and `parallel_tool_calls`.
 *
 * @throws {Untranslatable} naming the tool or the choice.
 */
export function toolMembers(json: JsonObject): JsonObject {
  const tools = objectsIn(json.tools).map((tool, i) => functionOf(tool, `tools[${i}]`))
  if (tools.length === 0) return {}
  const { tool_choice: choice } = json
  if (!isObject(choice)) return { tools }
  return {
    tools,
    tool_choice: choiceOf(choice),
    ...(choice.disable_parallel_tool_use === true && { parallel_tool_calls: false }),
  }
}

/** Tools with a type of their own are run by Anthropic, or known to its models alone. */
function functionOf(tool: JsonObject, path: string): JsonObject {
  const { type, name, input_schema: parameters, strict } = tool
  if (type !== undefined && type !== null && type !== 'custom') throw new Untranslatable(path)
  const description = textIn(tool.description)
  return {
    type: 'function',
    function: {
      name,
      ...(description !== undefined && { description }),
      parameters: isObject(parameters) ? parameters : { type: 'object', properties: {} },
      ...(strict === true && { strict: true }),
    },
  }
}

function choiceOf({ type, name }: JsonObject): JsonObject | string {
  switch (type) {
    case 'auto':
    case 'none':
      return type
    case 'any':
      return 'required'
    case 'tool':
      return { type: 'function', function: { name } }
    default:
      throw new Untranslatable('tool_choice')
  }
}
