import { z } from 'zod'

/** The scenarios that each client runs through. */
export const SCENARIOS = ['plain', 'stream', 'tools', 'structured', 'reasoning', 'image', 'pdf'] as const
export type Scenario = (typeof SCENARIOS)[number]

/** The question to a client, and the answer of its model. */
export const QUESTION = 'Say hello.'
export const HELLO = 'Hello from the model.'
export const SYSTEM = 'You are terse.'

/** Asked with the tools below. Their results make the answer, so that it shows whether they came. */
export const WEATHER_QUESTION = 'How is the weather in Rome and Bern, and what time is it?'
export const CITIES = ['Rome', 'Bern'] as const
export const weatherIn = (city: string): string => `rain in ${city}`
export const TIME = 'noon'
export const WEATHER_ANSWER = `After ${[...CITIES.map(weatherIn), TIME].join(', ')}.`

/** Asked behind the answer: it is given again. */
export const AND_NOW = 'And now?'

export const WEATHER_INPUT = z.object({ city: z.string() })
export const NO_INPUT = z.object({})

/** A form with bounds, which many upstreams refuse. */
export const FORM = z.object({
  name: z.string().min(1).max(12),
  count: z.number().min(1).max(9),
  tags: z.array(z.string()).max(3),
})
export const FORM_QUESTION = 'Fill in the form.'
export const FILLED = { name: 'Rome', count: 3, tags: ['old'] }

export const IMAGE = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
)
export const PDF = Buffer.from(
  '%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj 2 0 obj<</Type/Pages/Kids[]/Count 0>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF\n',
)
export const FILE_QUESTION = 'What is this?'

/** The model's answer about files that it got whole. */
export const seen = (type: string, bytes: number): string => `It is ${type} of ${bytes} bytes.`
