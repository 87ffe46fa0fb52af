import type { Role } from '../../core/call/index.ts'
import {
  type ChangeOrigin,
  changedObject,
  changedSettings,
  type RecordedChange,
} from '../../core/change-log/index.ts'

/** The members of an operator that can be changed. */
export interface OperatorSettings {
  /** Unique; the change log has it. */
  readonly name: string
  readonly role: Role
}

/** An operator with a token of their own. The token is not stored. */
export interface StoredOperator extends OperatorSettings {
  readonly id: string
  /** Until when the token before the last rotation is valid, in milliseconds since the epoch; null: it is not. */
  readonly previousUntil: number | null
  /** Milliseconds since the epoch. */
  readonly createdAt: number
}

/** An operator to be created. */
export interface NewOperator extends OperatorSettings {
  readonly id: string
  /** The hash that `hashSecret` returns. */
  readonly tokenHash: string
}

/**
 * A store for operators. Each change is one transaction, which includes its record. Operations reject if the store cannot
 * be reached.
 */
export interface OperatorStore {
  /** Returns operators, ordered by id. */
  list(query: {
    readonly after?: string | undefined
    readonly limit: number
  }): Promise<readonly StoredOperator[]>

  find(id: string): Promise<StoredOperator | undefined>

  /**
   * Finds the operator of a token, also of one that was rotated and is still valid.
   *
   * @param at the present time, in milliseconds since the epoch.
   */
  findByToken(tokenHash: string, at: number): Promise<StoredOperator | undefined>

  /** Adds an operator; undefined if the name is taken. */
  create(operator: NewOperator, origin: ChangeOrigin): Promise<StoredOperator | undefined>

  /**
   * Replaces members of an operator. If nothing changes, nothing is recorded.
   *
   * @returns the operator as it is now; `taken` if another one has the name; undefined if there is none.
   */
  change(
    id: string,
    members: Partial<OperatorSettings>,
    origin: ChangeOrigin,
  ): Promise<StoredOperator | 'taken' | undefined>

  /**
   * Gives an operator a new token. The previous one is valid until `previousUntil`; any token before that becomes invalid.
   *
   * @param previousUntil milliseconds since the epoch; null: no longer.
   * @returns the operator; undefined if there is none.
   */
  rotate(
    id: string,
    tokenHash: string,
    previousUntil: number | null,
    origin: ChangeOrigin,
  ): Promise<StoredOperator | undefined>

  /**
   * Deletes an operator; the tokens become invalid.
   *
   * @returns whether there was one.
   */
  delete(id: string, origin: ChangeOrigin): Promise<boolean>
}

export function operatorChange(
  action: 'operator.created' | 'operator.rotated' | 'operator.deleted',
  operator: StoredOperator,
  origin: ChangeOrigin,
): RecordedChange {
  return changedObject(action, operator.id, settingsOf(operator), origin)
}

/** Returns the record of changed settings; undefined if nothing changed. */
export function operatorSettingsChange(
  operator: StoredOperator,
  previous: StoredOperator,
  origin: ChangeOrigin,
): RecordedChange | undefined {
  const sides = { before: settingsOf(previous), after: settingsOf(operator) }
  return changedSettings('operator.changed', operator.id, sides, origin)
}

function settingsOf({ name, role }: OperatorSettings): OperatorSettings {
  return { name, role }
}
