import { isJsonObject, type JsonObject } from '../json/index.ts'
import { type LeaveOut, type RequestContext, refuse, Untranslatable } from './translation.ts'

/** The rule by which one member of a request is translated. */
interface MemberRule {
  /** A description, as in the list of the README. */
  readonly effect: string
  /** Whether a value has no counterpart and cannot be left out without harm. */
  refuses(value: unknown): boolean
  /** Whether a member that is not refused is reported, because the caller may notice that it has no effect. */
  reports?(value: unknown): boolean
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

/** @param neutral a description of the values that change nothing. */
const reportedUnless = (neutral: string, isNeutral: (value: unknown) => boolean): MemberRule => ({
  effect: `dropped and reported, unless ${neutral}`,
  refuses: () => false,
  reports: (value) => !isNeutral(value),
})

/** Values of `include` that ask for a part of the answer which only OpenAI's own tools produce, or for sealed reasoning. */
const HARMLESS_INCLUDES: ReadonlySet<unknown> = new Set([
  'code_interpreter_call.outputs',
  'computer_call_output.output.image_url',
  'file_search_call.results',
  'message.input_image.image_url',
  'reasoning.encrypted_content',
  'web_search_call.action.sources',
  'web_search_call.results',
])

/** The rules of members that do no harm on any line. Those of a direction come first. */
export const HARMLESS_MEMBERS: MemberRules = {
  provider: dropped('the gateway’s own'),
  models: dropped('names nothing but the model'),
  client_metadata: dropped('labels for the upstream’s own records'),
  metadata: dropped('labels for the upstream’s own records'),
  user: dropped('a label for the upstream’s own records'),
  safety_identifier: dropped('a label for the upstream’s own records'),
  session_id: dropped('a label for the upstream’s own records'),
  prompt_cache_key: dropped('affects the cost only'),
  prompt_cache_options: dropped('affects the cost only'),
  prompt_cache_retention: dropped('affects the cost only'),
  cache_control: dropped('affects the cost only'),
  speed: refusedUnless('`standard`', (value) => value === 'standard'),
  stream_options: dropped('concerns the framing of the stream'),
  verbosity: reportedUnless('`medium`', (value) => value === 'medium'),
  context_management: dropped('shortens the prompt only'),
  truncation: dropped('shortens the prompt only'),
  diagnostics: dropped('concerns the upstream’s cache'),
  max_tool_calls: dropped('concerns tools that the upstream runs'),
  parallel_tool_calls: refusedUnless('true', (value) => value === true),
  store: refusedUnless('false', (value) => value === false),
  background: refusedUnless('false', (value) => value === false),
  include: refusedUnless(
    'about sealed reasoning or tools that OpenAI runs',
    (value) => Array.isArray(value) && value.every((one) => HARMLESS_INCLUDES.has(one)),
  ),
  text: refusedUnless('without a format', hasNoFormat),
}

/** Whether the `text` of a response request asks for plain text. */
function hasNoFormat(value: unknown): boolean {
  if (!isJsonObject(value)) return false
  const { format } = value
  return (format ?? undefined) === undefined || (isJsonObject(format) && format.type === 'text')
}

/**
 * Checks that each member of a request has a counterpart or can be dropped. A member that is null counts as absent.
 *
 * @param rules those of the direction; others are in {@link HARMLESS_MEMBERS}.
 * @param context says what happens to each one that does not.
 * @throws {Untranslatable} naming the first one that cannot be left out.
 */
export function requireCounterparts(
  json: JsonObject,
  rules: MemberRules,
  { leaveOut = refuse, report }: RequestContext,
): void {
  for (const member in json) {
    const value = json[member]
    if (value === null || value === undefined) continue
    const rule = ruleOf(member, rules)
    if (rule && !rule.refuses(value)) {
      if (rule.reports?.(value)) report?.(member)
      continue
    }
    if (rule?.needed) throw new Untranslatable(member)
    leaveOut(member)
  }
}

function ruleOf(member: string, rules: MemberRules): MemberRule | undefined {
  if (Object.hasOwn(rules, member)) return rules[member]
  return Object.hasOwn(HARMLESS_MEMBERS, member) ? HARMLESS_MEMBERS[member] : undefined
}

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

/** Tools that the caller runs, though they are no functions. The model cannot do its work without them. */
const CALLERS_OWN = /^(?:custom|computer|bash|text_editor|memory|local_shell|shell|apply_patch)(?:_|$)/

/** Longer types are cut in messages. */
const MAX_TYPE_LENGTH = 64

/**
 * Leaves out a tool that is no function and has no counterpart.
 *
 * @throws {Untranslatable} naming the tool, if it may not be left out or the caller runs it.
 */
export function hostedTool(type: unknown, path: string, leaveOut: LeaveOut): undefined {
  const name = String(type).slice(0, MAX_TYPE_LENGTH)
  const what = `the tool ${JSON.stringify(name)}`
  if (CALLERS_OWN.test(name)) throw new Untranslatable(path, what)
  leaveOut(path, what)
}
