import type { JsonObject } from '../../json/index.ts'
import { type LeaveOut, Untranslatable } from '../translation.ts'
import { HARMLESS_MEMBERS } from './harmless-members.ts'
import type { MemberRule, MemberRules } from './member-rules.ts'

/**
 * Checks that each member of a request has a counterpart or can be dropped. A member that is null counts as absent.
 *
 * @param rules those of the direction; others are in {@link HARMLESS_MEMBERS}.
 * @param leaveOut is called with each one that does not.
 * @throws {Untranslatable} naming the first one that cannot be left out.
 */
export function requireCounterparts(json: JsonObject, rules: MemberRules, leaveOut: LeaveOut): void {
  for (const member in json) {
    const value = json[member]
    if (value === null || value === undefined) continue
    const rule = ruleOf(member, rules)
    if (rule && !rule.refuses(value)) continue
    if (rule?.needed) throw new Untranslatable(member)
    leaveOut(member)
  }
}

function ruleOf(member: string, rules: MemberRules): MemberRule | undefined {
  if (Object.hasOwn(rules, member)) return rules[member]
  return Object.hasOwn(HARMLESS_MEMBERS, member) ? HARMLESS_MEMBERS[member] : undefined
}
