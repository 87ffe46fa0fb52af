import { z } from 'zod'
import { NO_INPUT, TIME, WEATHER_INPUT, weatherIn } from '../scenarios.ts'

const WEATHER = { name: 'weather', description: 'The weather in a city.' }
const CLOCK = { name: 'clock', description: 'The time.' }

/** The tools with bare JSON Schemas, as SDKs without tools of their own take them. */
export const TOOLS = [
  { ...WEATHER, parameters: bare(WEATHER_INPUT) },
  { ...CLOCK, parameters: bare(NO_INPUT) },
]

function bare(schema: z.ZodType): Record<string, unknown> & { type: 'object' } {
  const { $schema: _, ...rest } = z.toJSONSchema(schema)
  return { ...rest, type: 'object' }
}

/** Returns the answer of a tool. */
export function runTool(name: string, input: unknown): string {
  if (name.endsWith('weather')) return weatherIn(WEATHER_INPUT.parse(input).city)
  if (!name.endsWith('clock')) throw new Error(`there is no tool ${name}`)
  NO_INPUT.parse(input)
  return TIME
}
