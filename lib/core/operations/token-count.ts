import { isJsonObject, tokenCount } from '../json/index.ts'
import type { AnswerReading } from './operation.ts'

/** Reads the answer to a count of input tokens. Throws SyntaxError if it has no count. */
export function readTokenCount(json: unknown): AnswerReading {
  if (!isJsonObject(json) || tokenCount(json.input_tokens) === undefined)
    throw new SyntaxError('the answer has no "input_tokens"')
  return { substance: 'output', usage: {}, estimateOutput: () => 0 }
}
