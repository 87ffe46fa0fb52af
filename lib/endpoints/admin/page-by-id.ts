/** Returns up to `limit` items behind an id, in the order of their ids. */
export function pageById<T extends { readonly id: string }>(
  items: Iterable<T>,
  limit: number,
  after = '',
): T[] {
  const behind = [...items].filter(({ id }) => id > after)
  return behind.sort((one, other) => (one.id < other.id ? -1 : 1)).slice(0, limit)
}
