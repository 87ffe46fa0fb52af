import { hash } from 'node:crypto'

/** OpenAI's longest name of a function. */
const SHORT = 64

/** Anthropic's longest name of a tool. */
export const LONG = 128

const FOREIGN = /[^a-zA-Z0-9_-]/g
const HASH_LENGTH = 8

/**
 * Returns the name of a tool in a form that the line accepts: mostly the name itself, else one that is derived from it. It
 * is the same in every turn, place and process, so that a tool keeps its name.
 *
 * @param most the length that the line accepts.
 */
export function toolName(name: unknown, most = SHORT): unknown {
  if (typeof name !== 'string' || name === '') return name
  const plain = name.replace(FOREIGN, '_')
  if (plain === name && name.length <= most) return name
  return `${plain.slice(0, most - HASH_LENGTH - 1)}_${hash('sha256', name).slice(0, HASH_LENGTH)}`
}

/** Returns the callers' names of the tools whose names {@link toolName} changes, by the line's. */
export function changedNames(names: readonly unknown[], most = SHORT): ReadonlyMap<unknown, string> {
  const byName = new Map<unknown, string>()
  for (const name of names) {
    const changed = toolName(name, most)
    if (changed !== name) byName.set(changed, String(name))
  }
  return byName
}
