export const MIB = 1024 * 1024
/** Right below the gateway's limit. */
export const FULL = 20 * MIB - 4096

export const CHAT = '/v1/chat/completions'
export const MESSAGES = '/v1/messages'
export const RESPONSES = '/v1/responses'

/** As often as it fits into `bytes`. */
export const filled = (unit: string, bytes = FULL): string =>
  unit.repeat(Math.floor(bytes / Buffer.byteLength(unit)))

export const times = (count: number, make: (i: number) => string, separator = ','): string =>
  Array.from({ length: count }, (_, i) => make(i)).join(separator)

export const head = '"model":"chat","max_tokens":5'
export const said = '"messages":[{"role":"user","content":"hi"}]'

/** A chat whose prompt is `text`, as it stands in JSON. */
export const prompt = (text: string): string => `{${head},"messages":[{"role":"user","content":"${text}"}]}`
export const withMessages = (list: string): string => `{${head},"messages":[${list}]}`
export const withMember = (json: string): string => `{${head},${said},"brand_new":${json}}`
export const objects = (count: number, members: number, key: (i: number) => string): string => {
  let next = 0
  return `[${times(count, () => `{${times(members, () => `"${key(next++)}":1`)}}`)}]`
}
/** Spreads numbers, so that neighbours have nothing in common. */
export const shuffled = (i: number): number => Math.imul(i, 2_654_435_761) >>> 0

export type Row = readonly [
  name: string,
  body: () => string | Buffer,
  path?: string,
  headers?: Record<string, string>,
]
