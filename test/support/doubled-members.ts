/**
 * Returns texts of a JSON value in which one object, at any depth, has one member twice: first as the other value has it,
 * then as this one has. The second name is written in several ways.
 */
export function doubledTexts(value: unknown, other: unknown): string[] {
  if (Array.isArray(value)) {
    const others = Array.isArray(other) ? other : []
    return value.flatMap((item, i) =>
      doubledTexts(item, others[i]).map((text) => `[${spliced(value, i, text).join(',')}]`),
    )
  }
  if (typeof value !== 'object' || value === null) return []
  const others = (typeof other === 'object' && other !== null ? other : {}) as Record<string, unknown>
  const members = Object.entries(value)
  const texts = members.map(([name, member]) => `${JSON.stringify(name)}:${JSON.stringify(member)}`)
  return members.flatMap(([name, member], i) => {
    const first = `${JSON.stringify(name)}:${JSON.stringify((Object.hasOwn(others, name) ? others[name] : undefined) ?? null)}`
    const doubled = [JSON.stringify(name), escaped(name)].map(
      (written) => `{${[first, ...texts.with(i, `${written} : ${JSON.stringify(member)}`)].join(' , ')}}`,
    )
    const inside = doubledTexts(member, others[name]).map(
      (text) => `{${texts.with(i, `${JSON.stringify(name)}:${text}`).join(',')}}`,
    )
    return [...doubled, ...inside]
  })
}

function spliced(list: readonly unknown[], at: number, text: string): string[] {
  return list.map((item, i) => (i === at ? text : JSON.stringify(item)))
}

/** Writes each character of a name as an escape. */
function escaped(name: string): string {
  const codes = Array.from({ length: name.length }, (_, i) =>
    name.charCodeAt(i).toString(16).padStart(4, '0'),
  )
  return `"${codes.map((code) => `\\u${code}`).join('')}"`
}
