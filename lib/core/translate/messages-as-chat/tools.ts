import { isJsonObject, type JsonObject, nonEmptyString, objectsIn } from '../../json/index.ts'
import { Untranslatable } from '../translation.ts'

/**
 * Translates Anthropic's tools and tool choice into `tools`, `tool_choice` and `parallel_tool_calls`.
 *
 * @throws {Untranslatable} naming the tool or the choice.
 */
export function toolMembers(json: JsonObject): JsonObject {
  const tools = objectsIn(json.tools).map((tool, i) => functionOf(tool, `tools[${i}]`))
  if (tools.length === 0) return {}
  const { tool_choice: choice } = json
  if (!isJsonObject(choice)) return { tools }
  return {
    tools,
    tool_choice: choiceOf(choice),
    ...(choice.disable_parallel_tool_use === true && { parallel_tool_calls: false }),
  }
}

/** Translates a tool into a function. Tools of other types are refused: Anthropic runs them, or only its models know them. */
function functionOf(tool: JsonObject, path: string): JsonObject {
  const { type, name, input_schema: parameters, strict } = tool
  if (type !== undefined && type !== null && type !== 'custom') throw new Untranslatable(path)
  const description = nonEmptyString(tool.description)
  return {
    type: 'function',
    function: {
      name,
      ...(description !== undefined && { description }),
      parameters: isJsonObject(parameters) ? parameters : { type: 'object', properties: {} },
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
