import { FormFile } from '../../../core/operations/index.ts'

const DATA_URL = /^data:([\w.+-]+\/[\w.+-]+)(?:;[\w=.+-]+)*;base64,/i

export function dataUrlOf({ contentType, bytes }: FormFile): string {
  return `data:${contentType};base64,${bytes.toString('base64')}`
}

/** Returns the file in a data URL; undefined if it is no data URL, or not in base64. */
export function fileOf(url: string): FormFile | undefined {
  const head = DATA_URL.exec(url)
  if (!head) return undefined
  const contentType = (head[1] as string).toLowerCase()
  const name = `input.${contentType.slice(contentType.indexOf('/') + 1).replace('jpeg', 'jpg')}`
  return new FormFile(name, contentType, Buffer.from(url.slice(head[0].length), 'base64'))
}
