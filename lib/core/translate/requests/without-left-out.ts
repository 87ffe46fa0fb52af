import type { JsonObject } from '../../json/index.ts'
import { type LeaveOut, Untranslatable } from '../translation.ts'

/**
 * Translates the parts of a content one by one.
 *
 * @param translate returns what a part becomes; nothing if it is left out.
 * @throws {Untranslatable} naming the content, if parts were left out and none remains: a message may not go missing.
 */
export function withoutLeftOut(
  content: readonly unknown[],
  path: string,
  leaveOut: LeaveOut,
  translate: (part: unknown, at: string, leave: LeaveOut) => JsonObject | readonly JsonObject[],
): JsonObject[] {
  let leftOut = false
  const leave: LeaveOut = (param, what) => {
    leaveOut(param, what)
    leftOut = true
  }
  const made: JsonObject[] = []
  for (let i = 0; i < content.length; i++) {
    const parts = translate(content[i], `${path}[${i}]`, leave)
    if (Array.isArray(parts)) made.push(...parts)
    else made.push(parts as JsonObject)
  }
  if (leftOut && made.length === 0) throw new Untranslatable(path)
  return made
}
