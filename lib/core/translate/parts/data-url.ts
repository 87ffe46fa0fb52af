/** What a `data:` URL holds, in base64. */
export interface DataUrl {
  readonly mediaType: string
  readonly data: string
}

/** Longer than any `data:…;base64` that means something; keeps a search from running through megabytes. */
const LONGEST_HEAD = 200

/** Reads a base64 `data:` URL; undefined where it is none. */
export function readDataUrl(url: string): DataUrl | undefined {
  const comma = url.slice(0, LONGEST_HEAD).indexOf(',')
  if (comma < 0) return undefined
  const head = /^data:([^;,]*)(?:;[^;,]*)*;base64$/i.exec(url.slice(0, comma))
  return head ? { mediaType: (head[1] ?? '').toLowerCase(), data: url.slice(comma + 1) } : undefined
}

export function dataUrl({ mediaType, data }: DataUrl): string {
  return `data:${mediaType};base64,${data}`
}
