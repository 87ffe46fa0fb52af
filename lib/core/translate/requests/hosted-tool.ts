import { type LeaveOut, Untranslatable } from '../translation.ts'

/** Tools that the caller runs, though they are no functions. The model cannot do its work without them. */
const CALLERS_OWN = /^(?:custom|computer|bash|text_editor|memory|local_shell|shell|apply_patch)(?:_|$)/

/** Longer types are cut where they are told. */
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
