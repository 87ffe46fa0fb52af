import { asObject } from './prompt.ts'

const MAX_DEPTH = 8

/**
 * Returns a value that fits a JSON Schema, always the same one: its constant, default or first permitted value, else a
 * simple value of its type. References are not followed.
 */
export function exampleValue(schema: unknown, depth = 0): unknown {
  const rules = asObject(schema) ?? {}
  if ('const' in rules) return rules.const
  if ('default' in rules) return rules.default
  for (const listed of [rules.enum, rules.examples]) {
    if (Array.isArray(listed) && listed.length > 0) return listed[0]
  }
  for (const options of [rules.anyOf, rules.oneOf]) {
    if (Array.isArray(options) && options.length > 0 && depth < MAX_DEPTH) {
      return exampleValue(options[0], depth + 1)
    }
  }
  switch (Array.isArray(rules.type) ? rules.type[0] : rules.type) {
    case 'string':
      return 'demo'
    case 'integer':
    case 'number':
      return typeof rules.minimum === 'number' ? rules.minimum : 1
    case 'boolean':
      return true
    case 'null':
      return null
    case 'array':
      return depth < MAX_DEPTH ? [exampleValue(rules.items, depth + 1)] : []
    default:
      return exampleObject(asObject(rules.properties) ?? {}, depth)
  }
}

function exampleObject(properties: { readonly [name: string]: unknown }, depth: number): object {
  if (depth >= MAX_DEPTH) return {}
  return Object.fromEntries(
    Object.entries(properties).map(([name, schema]) => [name, exampleValue(schema, depth + 1)]),
  )
}
