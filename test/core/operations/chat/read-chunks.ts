import { chatCompletions } from '../../../../lib/core/operations/index.ts'

type Json = Record<string, unknown>

export const chunk = (choice: Json, members: Json = {}) => ({
  choices: [{ index: 0, ...choice }],
  ...members,
})

/** Reads chunks; answers the reader and what it said of each. */
export function readAll(
  events: (Json | string)[],
  { json = {} as Json, answers = 1, name = undefined as string | undefined } = {},
) {
  const reader = chatCompletions.streamReader({ json, answers })
  const readings = events.map((event) =>
    reader.read({ event: name, data: typeof event === 'string' ? event : JSON.stringify(event) }),
  )
  return { reader, readings }
}
