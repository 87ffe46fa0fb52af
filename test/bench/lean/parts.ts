/** The parts of the chain, in the order in which a call meets them; `other` is what stands around them. */
export const PARTS = ['begin', 'auth', 'read', 'limits', 'money', 'route', 'other'] as const

/** One of {@link PARTS}. */
export type Part = (typeof PARTS)[number]

/** Which part a folder of `lib` belongs to; those that are not named belong to `other`. */
const PART_OF_FOLDER: ReadonlyMap<string, Part> = new Map([
  ['begin-call', 'begin'],
  ['call', 'begin'],
  ['authenticate', 'auth'],
  ['read-request', 'read'],
  ['operations', 'read'],
  ['rate-limit', 'limits'],
  ['billing-guard', 'money'],
  ['ledger', 'money'],
  ['route', 'route'],
  ['routing', 'route'],
])

/** The path of a file of ours from the root of the project; undefined for Node's own files and those of packages. */
export function ownPath(url: string): string | undefined {
  if (!url.startsWith('file://') || url.includes('/node_modules/')) return undefined
  return /\/((?:lib|examples\/gateway)\/.+)$/.exec(url)?.[1]
}

/** The part that a file of ours belongs to. */
export function partOf(path: string): Part {
  for (const folder of path.split('/')) {
    const part = PART_OF_FOLDER.get(folder)
    if (part !== undefined) return part
  }
  return 'other'
}
