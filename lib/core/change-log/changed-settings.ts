import { isDeepStrictEqual } from 'node:util'
import type { ChangeAction, ChangeOrigin, RecordedChange } from './change-log.ts'

/** Returns the record of changed settings; undefined if nothing changed. */
export function changedSettings(
  action: ChangeAction,
  subject: string,
  { before, after }: { readonly before: object; readonly after: object },
  origin: ChangeOrigin,
): RecordedChange | undefined {
  return isDeepStrictEqual(before, after) ? undefined : { ...origin, action, subject, before, after }
}
