import { objectsIn, parseObject } from '../parts/json-object.ts'
import type { ReasoningMember } from '../parts/reasoning-details.ts'
import type { JsonObject } from '../translation.ts'

/** Tells what was sealed here from what an upstream sealed. */
const MARK = 'reasoning_details:'

/** What a reasoning item has to hold beside its text, for it to go back as it came. */
export interface Sealed {
  /** `reasoning_details` of the chat. */
  readonly details: readonly JsonObject[]
  /** Where the chat told the text. */
  readonly member: ReasoningMember
}

/**
 * What a line wants to see again of its reasoning, as a response's `encrypted_content`: callers hand it back unread. It is
 * not secret. Nothing where the text alone says it all.
 */
export function seal({ details, member }: Sealed): { encrypted_content?: string } {
  if (details.length === 0 && member === 'reasoning_content') return {}
  return { encrypted_content: MARK + Buffer.from(JSON.stringify({ details, member })).toString('base64') }
}

/** What {@link seal} was given; of anything else that there was nothing. */
export function openSeal(sealed: unknown): Sealed {
  const isOurs = typeof sealed === 'string' && sealed.startsWith(MARK)
  const held = isOurs ? parseObject(Buffer.from(sealed.slice(MARK.length), 'base64').toString()) : undefined
  return {
    details: objectsIn(held?.details),
    member: held?.member === 'reasoning' ? 'reasoning' : 'reasoning_content',
  }
}
