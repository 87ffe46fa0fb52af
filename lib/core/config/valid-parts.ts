import { z } from 'zod'
import { isJsonObject } from '../json/index.ts'

/** The parts of a value that remain without its faults: members and entries may be missing, and lists have holes. */
export type Parts<Value> = Value extends readonly (infer Item)[]
  ? readonly (Parts<Item> | undefined)[]
  : Value extends string | number | boolean | bigint | null | undefined
    ? Value
    : { readonly [Member in keyof Value]?: Parts<Value[Member]> | undefined }

/**
 * Returns the parts of a value that fit a schema, with its defaults; undefined if nothing does. Items keep their place in
 * a list, so that faults found in the parts name the path in the whole.
 */
export function validParts<Schema extends z.ZodType>(
  schema: Schema,
  value: unknown,
): Parts<z.output<Schema>> | undefined {
  return partsOf(schema, value) as Parts<z.output<Schema>> | undefined
}

function partsOf(schema: z.core.$ZodType, value: unknown): unknown {
  const parsed = z.safeParse(schema, value)
  if (parsed.success) return parsed.data
  if (
    schema instanceof z.ZodOptional ||
    schema instanceof z.ZodDefault ||
    schema instanceof z.ZodPrefault ||
    schema instanceof z.ZodNullable
  )
    return partsOf(schema.unwrap(), value)
  if (schema instanceof z.ZodArray)
    return Array.isArray(value) ? value.map((item) => partsOf(schema.element, item)) : undefined
  if (!isJsonObject(value)) return undefined
  if (schema instanceof z.ZodRecord) {
    const entries = Object.entries(value).map(([name, item]) => [name, partsOf(schema.valueType, item)])
    return Object.fromEntries(entries.filter(([, item]) => item !== undefined))
  }
  if (!(schema instanceof z.ZodObject)) return undefined
  const members = Object.entries(schema.shape as Record<string, z.core.$ZodType>)
  return Object.fromEntries(members.map(([name, member]) => [name, partsOf(member, value[name])]))
}
