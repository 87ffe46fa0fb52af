import { z } from 'zod'

/**
 * A list whose check stops at its first invalid item. `z.array` collects the issues of all items, which for a body of
 * some megabytes can take gigabytes.
 */
export function listOf<Item extends z.ZodType>(item: Item, min = 0, max = Number.POSITIVE_INFINITY) {
  const list = z
    .custom<z.output<Item>[]>(Array.isArray, { error: 'must be a list' })
    .superRefine((list, context) => {
      if (list.length < min) context.addIssue({ code: 'custom', message: 'must not be empty' })
      if (list.length > max) {
        context.addIssue({ code: 'custom', message: `must not have more than ${max} items` })
        return
      }
      for (let i = 0; i < list.length; i++) {
        const { error } = item.safeParse(list[i])
        if (!error) continue
        for (const issue of error.issues) context.addIssue({ ...issue, path: [i, ...issue.path] })
        return
      }
    })
    .meta({
      type: 'array',
      minItems: min,
      ...(Number.isFinite(max) && { maxItems: max }),
      /** Created only when a schema is asked for. */
      get items() {
        const { $schema: _, ...items } = z.toJSONSchema(item, { io: 'input', unrepresentable: 'any' })
        return items
      },
    })
  itemsOfLists.set(list, { item, min, max })
  return list
}

const itemsOfLists = new WeakMap<
  z.core.$ZodType,
  { readonly item: z.ZodType; readonly min: number; readonly max: number }
>()

/** Returns the items and the bounds of a list that {@link listOf} made; undefined for any other schema. */
export function itemsOf(schema: z.core.$ZodType) {
  return itemsOfLists.get(schema)
}
