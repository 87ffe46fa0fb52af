import { isJsonObject, type JsonObject, nonEmptyString, objectsIn } from '../../json/index.ts'
import { type ReasoningMember, reasoningIn } from '../parts/reasoning-details.ts'

/** The words of a chat message, and how many of its parts no other protocol has. */
export interface ChatContent {
  readonly text: string
  readonly reasoning: string
  /** The member that holds the reasoning. */
  readonly member: ReasoningMember
  readonly skipped: number
}

/** Reads the content of a chat message; some upstreams send it, and the reasoning, in parts. */
export function readChatContent(message: JsonObject): ChatContent {
  const { content, audio, images, function_call: functionCall } = message
  const { text: ofMember, member } = reasoningIn(message)
  let reasoning = ofMember
  let text = nonEmptyString(content) ?? ''
  let skipped = [audio, functionCall].filter(isJsonObject).length + objectsIn(images).length
  for (const part of objectsIn(content)) {
    if (part.type === 'text') text += nonEmptyString(part.text) ?? ''
    else if (part.type === 'thinking')
      for (const item of objectsIn(part.thinking)) reasoning += nonEmptyString(item.text) ?? ''
    else skipped++
  }
  return { text, reasoning, member, skipped }
}
