import { z } from 'zod'
import { must } from './script.ts'

/** A JSON Schema of an object. */
export const bareSchema = z.looseObject({
  type: z.literal('object'),
  properties: z.record(z.string(), z.unknown()).optional(),
})

/** The names of its members. */
export const membersOf = (schema: z.infer<typeof bareSchema> | undefined): string[] =>
  Object.keys(schema?.properties ?? {})

/** The keywords that Anthropic compiles into no grammar, by its documentation of structured outputs. */
const UNCOMPILED = [
  'minimum',
  'maximum',
  'exclusiveMinimum',
  'exclusiveMaximum',
  'multipleOf',
  'minLength',
  'maxLength',
  'maxItems',
  'uniqueItems',
  'minProperties',
  'maxProperties',
]

/** Refuses what Anthropic's structured outputs refuse. */
export function mustCompile(schema: unknown): void {
  if (Array.isArray(schema)) for (const one of schema) mustCompile(one)
  if (typeof schema !== 'object' || schema === null || Array.isArray(schema)) return
  const { properties, ...keywords } = schema as Record<string, unknown>
  for (const keyword of UNCOMPILED)
    must(
      !(keyword in keywords),
      `output_config.format.schema: For '${keywords.type}' type, property '${keyword}' is not supported`,
    )
  must(
    keywords.type !== 'object' || keywords.additionalProperties === false,
    "output_config.format.schema: For 'object' type, 'additionalProperties' must be explicitly set to false",
  )
  for (const one of Object.values(properties ?? {})) mustCompile(one)
  for (const one of Object.values(keywords)) mustCompile(one)
}
