import { z } from 'zod'
import { configSchema } from './config-schema.ts'

/**
 * Returns the JSON Schema of the config file. Set `"$schema"` of the file to the path of a copy, and your editor checks
 * the file. `npx express-model-gateway --schema` prints it.
 */
export function configJsonSchema(): object {
  return { title: 'express-model-gateway config', ...z.toJSONSchema(configSchema, { io: 'input' }) }
}

interface Schema {
  readonly properties?: Readonly<Record<string, Schema>>
  readonly items?: Schema
  readonly additionalProperties?: Schema | boolean
  readonly anyOf?: readonly Schema[]
  readonly oneOf?: readonly Schema[]
}

/** Returns the names of the members that an object of the config can have, by the path of the object. */
export function knownMembers(path: readonly PropertyKey[]): string[] {
  let schemas = alternativesOf(configJsonSchema())
  for (const part of path) schemas = schemas.flatMap((schema) => alternativesOf(memberOf(schema, part)))
  return schemas.flatMap(({ properties = {} }) => Object.keys(properties))
}

function memberOf({ properties, items, additionalProperties }: Schema, part: PropertyKey): Schema {
  if (typeof part === 'number') return items ?? {}
  const others = typeof additionalProperties === 'object' ? additionalProperties : {}
  return properties?.[String(part)] ?? others
}

function alternativesOf(schema: Schema): Schema[] {
  const alternatives = schema.anyOf ?? schema.oneOf
  return alternatives ? alternatives.flatMap(alternativesOf) : [schema]
}
