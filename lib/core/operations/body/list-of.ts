import { z } from 'zod'

/**
 * A list whose check ends at its first faulty item. `z.array` notes the faults of all of them, which for a body of some
 * megabytes that holds nothing else amounts to gigabytes.
 */
export function listOf<Item extends z.ZodType>(item: Item, min = 0) {
  const list = z
    .custom<z.output<Item>[]>(Array.isArray, { error: 'must be a list' })
    .superRefine((list, context) => {
      if (list.length < min) context.addIssue({ code: 'custom', message: 'must not be empty' })
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
      /** Worded when somebody asks for the schema, and not before. */
      get items() {
        const { $schema: _, ...items } = z.toJSONSchema(item, { io: 'input', unrepresentable: 'any' })
        return items
      },
    })
  itemsOfLists.set(list, { item, min })
  return list
}

const itemsOfLists = new WeakMap<z.core.$ZodType, { readonly item: z.ZodType; readonly min: number }>()

/** The items of a list that {@link listOf} made, and how many there must be; undefined of any other schema. */
export function itemsOf(schema: z.core.$ZodType) {
  return itemsOfLists.get(schema)
}
