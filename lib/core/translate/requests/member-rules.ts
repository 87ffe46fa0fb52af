/** What the translation does with one member of a request. */
export interface MemberRule {
  /** A description, as it stands in the list of the README. */
  readonly effect: string
  /** Whether a value has no counterpart and cannot be left out without harm. */
  refuses(value: unknown): boolean
  /** Whether the member is refused even if others may be left out: the request would be another one without it. */
  readonly needed?: true
}

/** The rules of a request's members, by name. A member without a rule is refused: dropping it could do harm. */
export type MemberRules = Readonly<Record<string, MemberRule>>

export const becomes = (effect: string): MemberRule => ({ effect, refuses: () => false })

export const dropped = (reason: string): MemberRule => ({
  effect: `dropped: ${reason}`,
  refuses: () => false,
})

export const refused: MemberRule = { effect: 'refused', refuses: () => true }

export const alwaysRefused: MemberRule = { effect: 'always refused', refuses: () => true, needed: true }

/** @param neutral a description of the values that change nothing. */
export const refusedUnless = (neutral: string, isNeutral: (value: unknown) => boolean): MemberRule => ({
  effect: `refused, unless ${neutral}`,
  refuses: (value) => !isNeutral(value),
})
