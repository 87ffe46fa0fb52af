import { isJsonObject, type JsonObject, objectsIn } from '../../json/index.ts'
import { takesForcedTool } from './claude-models.ts'

/** The members of a message request about tools, and the instruction that stands for what they cannot say. */
export interface AskedTools {
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
