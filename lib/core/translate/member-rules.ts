import { type JsonObject, Untranslatable } from './translation.ts'

/** What becomes of one member of a request. */
export interface MemberRule {
  /** In words, as the table in the README has it. */
  readonly fate: string
  /** Whether a value has no counterpart and cannot be left out without harm. */
  refuses(value: unknown): boolean
}

/** The members of a request, by name. One that is not here is refused: whether it can be left out nobody knows. */
export type MemberRules = Readonly<Record<string, MemberRule>>

export const becomes = (fate: string): MemberRule => ({ fate, refuses: () => false })

export const dropped = (why: string): MemberRule => ({ fate: `dropped: ${why}`, refuses: () => false })

export const refused: MemberRule = { fate: 'refused', refuses: () => true }

/** @param neutral the values that ask for nothing, in words. */
export const refusedUnless = (neutral: string, isNeutral: (value: unknown) => boolean): MemberRule => ({
  fate: `refused, unless ${neutral}`,
  refuses: (value) => !isNeutral(value),
})

/**
 * Looks through the members of a request for one that has no counterpart. A null is as good as no member.
 *
 * @throws {Untranslatable} naming the member.
 */
export function requireCounterparts(json: JsonObject, rules: MemberRules): void {
  for (const member in json) {
    const value = json[member]
    if (value === null || value === undefined) continue
    const rule = Object.hasOwn(rules, member) ? rules[member] : undefined
    if (!rule || rule.refuses(value)) throw new Untranslatable(member)
  }
}
