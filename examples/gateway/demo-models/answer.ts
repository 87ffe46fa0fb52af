import { exampleValue } from './example-value.ts'
import type { DemoModel } from './models.ts'
import type { Prompt, Tool } from './prompt.ts'
import { tokensOf } from './tokens.ts'
import { writeText } from './writer.ts'

/** Why an answer ends. */
export type Finish = 'stop' | 'length' | 'tool' | 'filtered'

/** One answer, independent of the protocol. */
export interface Answer {
  /** The tokens of the text, or of the arguments of the tool call (JSON); each is one streamed chunk. */
  readonly tokens: readonly string[]
  /** The name of the tool that the answer calls; undefined for a text. */
  readonly tool: string | undefined
  readonly finish: Finish
}

const TOKENS_BEFORE_BREAKING_OFF = 8

/** Writes the answers to a prompt, as many as its `choices`. */
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
  // With a result, the message still names the tool. Calling it again would never end.
  const named = toolResult === undefined ? tools.find(({ name }) => lastUserText.includes(name)) : undefined
  return named ?? (toolChoice === 'any' ? tools[0] : undefined)
}
