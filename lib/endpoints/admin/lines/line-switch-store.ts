import type { ChangeOrigin, RecordedChange } from '../../../core/change-log/index.ts'

/**
 * A store for the lines that operators have switched on or off, for all processes and across restarts. A change and its
 * record are written in one transaction. Operations reject if the store cannot be reached.
 */
export interface LineSwitchStore {
  /** Returns the lines that were switched, and whether each is on. */
  all(): Promise<ReadonlyMap<string, boolean>>

  /**
   * Switches a line. If the line is switched so already, nothing is recorded.
   *
   * @param enabled null: the config decides again.
   */
  set(line: string, enabled: boolean | null, origin: ChangeOrigin): Promise<void>
}

/** Returns the record of a switched line; null stands for the config's decision. */
export function lineSwitch(
  line: string,
  before: boolean | null,
  after: boolean | null,
  origin: ChangeOrigin,
): RecordedChange {
  const action = 'line.switched'
  return { ...origin, action, subject: line, before: { enabled: before }, after: { enabled: after } }
}
