import type { JsonObject } from '../../json/index.ts'
import { Untranslatable } from '../translation.ts'

/** What the translation does with one member of a request. */
export interface MemberRule {
  /** A description, as it stands in the table of the README. */
  readonly effect: string
  /** Whether a value has no counterpart and cannot be left out without harm. */
  refuses(value: unknown): boolean
}

/** The rules of a request's members, by name. A member without a rule is refused: dropping it could do harm. */
export type MemberRules = Readonly<Record<string, MemberRule>>

export const becomes = (effect: string): MemberRule => ({ effect, refuses: () => false })

export const dropped = (reason: string): MemberRule => ({
  effect: `dropped: ${reason}`,
  refuses: () => false,
})

export const refused: MemberRule = { effect: 'refused', refuses: () => true }

/** @param neutral a description of the values that change nothing. */
export const refusedUnless = (neutral: string, isNeutral: (value: unknown) => boolean): MemberRule => ({
  effect: `refused, unless ${neutral}`,
  refuses: (value) => !isNeutral(value),
})

/**
 * Checks that each member of a request has a counterpart or can be dropped. A member that is null counts as absent.
 *
 * @throws {Untranslatable} naming the first member that does not.
 */
export function requireCounterparts(json: JsonObject, rules: MemberRules): void {
  for (const member in json) {
    const value = json[member]
    if (value === null || value === undefined) continue
    const rule = Object.hasOwn(rules, member) ? rules[member] : undefined
    if (!rule || rule.refuses(value)) throw new Untranslatable(member)
  }
}
