/** The size of a picture in the task-style protocol. */
export interface Framing {
  /** `720p` */
  readonly resolution: string
  /** `16:9` */
  readonly ratio: string
}

/** Width and height for each resolution and ratio on task-style lines. */
const SIZES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  '480p': {
    '16:9': '864x480',
    '4:3': '736x544',
    '1:1': '640x640',
    '3:4': '544x736',
    '9:16': '480x864',
    '21:9': '960x416',
  },
  '720p': {
    '16:9': '1280x720',
    '4:3': '1112x834',
    '1:1': '960x960',
    '3:4': '834x1112',
    '9:16': '720x1280',
    '21:9': '1470x630',
  },
  '1080p': {
    '16:9': '1920x1080',
    '4:3': '1664x1248',
    '1:1': '1440x1440',
    '3:4': '1248x1664',
    '9:16': '1080x1920',
    '21:9': '2206x946',
  },
}

const FRAMINGS: ReadonlyMap<string, Framing> = new Map(
  Object.entries(SIZES).flatMap(([resolution, byRatio]) =>
    Object.entries(byRatio).map(([ratio, size]) => [size, { resolution, ratio }] as const),
  ),
)

/** The size of the OpenAI-style protocol for a request without one. */
export const DEFAULT_SIZE = '720x1280'

/** All sizes that have a resolution and a ratio, for messages. */
export const MAPPED_SIZES = [...FRAMINGS.keys()].join(', ')

/** Returns resolution and ratio of a size such as `1280x720`; undefined if it has none. */
export function framingOf(size: string): Framing | undefined {
  return FRAMINGS.get(size)
}

/** Returns the size for a resolution and a ratio, such as `1280x720`; undefined if there is none. */
export function sizeOf({ resolution, ratio }: Framing): string | undefined {
  const byRatio = Object.hasOwn(SIZES, resolution.toLowerCase()) ? SIZES[resolution.toLowerCase()] : undefined
  return byRatio && Object.hasOwn(byRatio, ratio) ? byRatio[ratio] : undefined
}
