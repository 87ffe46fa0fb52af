/** Nothing that is configured is nested deeper. */
const MAX_DEPTH = 16

/**
 * Returns the paths of all members with the name `__proto__`. A schema drops them without a word, or they would replace a prototype.
 *
 * @example protoMembers(JSON.parse('{"tags":{"__proto__":"x"}}')) // [['tags', '__proto__']]
 */
export function protoMembers(value: unknown, depth = 0): PropertyKey[][] {
  if (typeof value !== 'object' || value === null || depth > MAX_DEPTH) return []
  return Object.entries(value).flatMap(([name, member]) => {
    const key = Array.isArray(value) ? Number(name) : name
    const below = protoMembers(member, depth + 1).map((path) => [key, ...path])
    return name === '__proto__' ? [[name], ...below] : below
  })
}
