import { parseJson } from '../../../core/json/index.ts'
import { readFrame } from '../../../core/protocols/index.ts'

/** Whether the text behind the last blank line of a stream is the beginning of an event that was cut. */
export function isCutEvent(text: string): boolean {
  if (text.trim() === '') return false
  const { data } = readFrame(text)
  return data.trim() !== '[DONE]' && parseJson(data) === undefined
}
