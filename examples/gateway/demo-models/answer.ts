import { exampleValue } from './example-value.ts'
import type { DemoModel } from './models.ts'
import type { Prompt, Tool } from './prompt.ts'
import { tokensOf } from './tokens.ts'
import { writeText } from './writer.ts'

/** Why an answer ends; each protocol has its own word for it. */
export type Finish = 'stop' | 'length' | 'tool' | 'filtered'

/** One answer, not yet in any protocol's form. */
export interface Answer {
  /** Its text, or the arguments of its tool call (JSON), in tokens; one streamed chunk each. */
  readonly tokens: readonly string[]
  /** Name of the tool it calls instead of saying something. */
  readonly tool: string | undefined
  readonly finish: Finish
}

const TOKENS_BEFORE_BREAKING_OFF = 8

/** Writes the answers a prompt asks for (`choices` of them), as this model would. */
export function writeAnswers(prompt: Prompt, model: DemoModel): Answer[] {
  return Array.from({ length: prompt.choices }, (_, variant) => writeAnswer(prompt, model, variant))
}

function writeAnswer(prompt: Prompt, model: DemoModel, variant: number): Answer {
  if (model.withholds !== undefined) {
    return { tokens: [], tool: undefined, finish: model.withholds === 'filtered' ? 'filtered' : 'stop' }
  }
  const tool = toolToCall(prompt)
  const text = tool === undefined ? textFor(prompt, variant) : JSON.stringify(exampleValue(tool.schema))
  const tokens = tokensOf(text)
  const limit =
    model.breaksOff === undefined
      ? prompt.maxOutputTokens
      : Math.min(prompt.maxOutputTokens, TOKENS_BEFORE_BREAKING_OFF)
  const finish = tokens.length > limit ? 'length' : tool === undefined ? 'stop' : 'tool'
  return { tokens: tokens.slice(0, limit), tool: tool?.name, finish }
}

function textFor(prompt: Prompt, variant: number): string {
  if (prompt.json === undefined) return writeText(prompt, variant)
  if (prompt.json === 'object') return JSON.stringify({ demo: true, answer: writeText(prompt, variant) })
  return JSON.stringify(exampleValue(prompt.json.schema))
}

function toolToCall({ tools, toolChoice, toolResult, lastUserText }: Prompt): Tool | undefined {
  if (toolChoice === 'none') return undefined
  if (typeof toolChoice === 'object') return tools.find((tool) => tool.name === toolChoice.name)
  // The user's message names the tool still when its result has come back; calling again would never end.
  const named = toolResult === undefined ? tools.find(({ name }) => lastUserText.includes(name)) : undefined
  return named ?? (toolChoice === 'any' ? tools[0] : undefined)
}
