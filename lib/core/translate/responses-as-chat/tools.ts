import { isJsonObject, type JsonObject, objectsIn } from '../../json/index.ts'
import { Untranslatable } from '../translation.ts'

/**
 * Translates the tools and the tool choice of a response request.
 *
 * @throws {Untranslatable} naming the tool or the choice.
 */
export function toolMembers(json: JsonObject): JsonObject {
  const tools = objectsIn(json.tools).map((tool, i) => toolOf(tool, `tools[${i}]`))
  if (tools.length === 0) return {}
  const { tool_choice: choice, parallel_tool_calls: parallel } = json
  return {
    tools,
    ...(choice !== undefined && choice !== null && { tool_choice: choiceOf(choice) }),
    ...(typeof parallel === 'boolean' && { parallel_tool_calls: parallel }),
  }
}

function toolOf({ type, ...fn }: JsonObject, path: string): JsonObject {
  if (type !== 'function') throw new Untranslatable(path)
  const { name, description, parameters, strict } = fn
  return {
    type,
    function: {
      name,
      ...(typeof description === 'string' && { description }),
      ...(isJsonObject(parameters) && { parameters }),
      ...(typeof strict === 'boolean' && { strict }),
    },
  }
}

function choiceOf(choice: unknown): unknown {
  if (typeof choice === 'string') return choice
  if (isJsonObject(choice)) {
    if (choice.type === 'function') return named(choice)
    if (choice.type === 'allowed_tools') {
      const tools = objectsIn(choice.tools).map(named)
      return { type: 'allowed_tools', allowed_tools: { mode: choice.mode, tools } }
    }
  }
  throw new Untranslatable('tool_choice')
}

const named = ({ name }: JsonObject): JsonObject => ({ type: 'function', function: { name } })
