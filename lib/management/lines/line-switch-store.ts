import type { ChangeOrigin, RecordedChange } from '../../core/change-log/index.ts'

/**
 * A store for the switches of lines, for all processes and across restarts: which lines are on or off, and whose rests are
 * lifted. A change and its record are written in one transaction. Operations reject if the store cannot
 * be reached.
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

  /** Returns how often the rests of each line were lifted. A process that finds another number lifts its own. */
  lifts(): Promise<ReadonlyMap<string, number>>

  /**
   * Lifts the rests of a line in all processes. It is recorded also if nothing is known to rest.
   *
   * @param rests what is known to rest, for the record.
   */
  lift(line: string, rests: readonly object[], origin: ChangeOrigin): Promise<void>
}

/** Returns the record of a switched line; null means the config's decision. */
export function lineSwitch(
  line: string,
  before: boolean | null,
  after: boolean | null,
  origin: ChangeOrigin,
): RecordedChange {
  const action = 'line.switched'
  return { ...origin, action, subject: line, before: { enabled: before }, after: { enabled: after } }
}

/** Returns the record of a line whose rests were lifted. */
export function restLift(line: string, rests: readonly object[], origin: ChangeOrigin): RecordedChange {
  return { ...origin, action: 'line.rests_lifted', subject: line, before: { rests }, after: { rests: [] } }
}
