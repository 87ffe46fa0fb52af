import type { ChangeOrigin, RecordedChange } from '../../../core/change-log/index.ts'

/**
 * Which lines operators have switched on or off, over all processes and restarts. A change is recorded with what it
 * changes, in one transaction. Rejects when the store cannot be reached.
 */
export interface LineSwitchStore {
  /** Whether lines are on, of those that were switched. */
  all(): Promise<ReadonlyMap<string, boolean>>

  /**
   * Switches a line. What it is already is no change, and not recorded.
   *
   * @param enabled null: as the config says, from now on.
   */
  set(line: string, enabled: boolean | null, origin: ChangeOrigin): Promise<void>
}

/** What a store records of a switched line; null: as the config says. */
export function lineSwitch(
  line: string,
  before: boolean | null,
  after: boolean | null,
  origin: ChangeOrigin,
): RecordedChange {
  const action = 'line.switched'
  return { ...origin, action, subject: line, before: { enabled: before }, after: { enabled: after } }
}
