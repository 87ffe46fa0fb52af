/** The content of a base64 `data:` URL. */
export interface DataUrl {
  readonly mediaType: string
  readonly data: string
}

/** Longer than any meaningful `data:…;base64` prefix; bounds the search for the comma. */
const MAX_PREFIX_LENGTH = 200

/** Reads a base64 `data:` URL; returns undefined for any other URL. */
export function readDataUrl(url: string): DataUrl | undefined {
  const comma = url.slice(0, MAX_PREFIX_LENGTH).indexOf(',')
  if (comma < 0) return undefined
  const prefix = /^data:([^;,]*)(?:;[^;,]*)*;base64$/i.exec(url.slice(0, comma))
  return prefix ? { mediaType: (prefix[1] ?? '').toLowerCase(), data: url.slice(comma + 1) } : undefined
}

export function dataUrl({ mediaType, data }: DataUrl): string {
  return `data:${mediaType};base64,${data}`
}
