import type { ChangeOrigin, RecordedChange } from '../../../core/change-log/index.ts'
import { accountWallet } from '../../../ledger/index.ts'
import { depositChange, holdsDeposits, repeatedDeposit } from '../../../management/accounts/account-store.ts'
import type { DepositOutcome } from '../../../management/index.ts'
import { Groups } from '../driver/groups.ts'
import { RowStatement } from '../driver/row-statement.ts'
import type { Database } from '../driver/tables.ts'
import { type Planned, writePlanned } from '../driver/write-together.ts'
import { depositWrites, type Movement } from '../ledger/sql-ledger-admin.ts'
import { changeWrite } from './sql-change-log.ts'

/** Each group changes the funds that those of other processes record, so that one of them comes first. */
const MAX_TRIES = 50

/** A deposit or adjustment, and who makes it. */
export interface RecordedMovement extends Pick<Movement, 'amount' | 'reference' | 'reason'> {
  readonly origin: ChangeOrigin
}

/** The deposits of a reference. */
interface StandingRow {
  readonly reference: string
  /** null: there is no such account. */
  readonly account: string | null
  readonly funds: bigint | null
  readonly amount: bigint | null
  readonly at: bigint | null
  readonly reason: string | null
}

const FIND = RowStatement.select<StandingRow>(
  { account: 'text', wallet: 'text', reference: 'text' },
  `select given.reference, accounts.id as account, wallets.funds, deposits.amount, deposits.at, deposits.reason
    from given left join accounts on accounts.id = given.account left join wallets on wallets.id = given.wallet
    left join deposits on deposits.account = given.account and deposits.reference = given.reference`,
)

/**
 * Adds to the balances of accounts. Each change records the funds before it, so that those of one account come one after
 * another; while one is written, the next ones of this process gather, and are written together.
 */
export class SqlDeposits {
  readonly #db: Database
  /** The deposits under way, by account. */
  readonly #groups = new Map<string, Groups<RecordedMovement, DepositOutcome>>()

  constructor(db: Database) {
    this.#db = db
  }

  /** Adds an amount once per reference. */
  async add(account: string, movement: RecordedMovement): Promise<DepositOutcome> {
    const groups = this.#groups.get(account) ?? this.#begin(account)
    try {
      return await groups.run(movement)
    } finally {
      if (groups.idle && this.#groups.get(account) === groups) this.#groups.delete(account)
    }
  }

  #begin(account: string): Groups<RecordedMovement, DepositOutcome> {
    const ask = (group: readonly RecordedMovement[]) =>
      writePlanned(this.#db, () => planned(this.#db, account, group), MAX_TRIES)
    const groups = new Groups<RecordedMovement, DepositOutcome>({ atOnce: 1, ask })
    this.#groups.set(account, groups)
    return groups
  }
}

async function planned(
  db: Database,
  account: string,
  group: readonly RecordedMovement[],
): Promise<Planned<DepositOutcome[]>> {
  const references = new Set(group.map(({ reference }) => reference))
  const { rows } = await FIND.run(
    db,
    Array.from(references, (reference) => [account, accountWallet(account), reference]),
  )
  const [first] = rows
  if (first === undefined || first.account === null)
    return { writes: [], result: group.map(() => ({ kind: 'no_account' })) }
  const known = new Map<string, Omit<Movement, 'account' | 'reference'>>()
  for (const { reference, amount, at, reason } of rows)
    if (amount !== null) known.set(reference, { amount, at: Number(at), reason })
  const before = first.funds ?? 0n
  let funds = before
  const changes: RecordedChange[] = []
  const movements: Omit<Movement, 'account'>[] = []
  const result = group.map(({ origin, ...asked }): DepositOutcome => {
    const { amount, reference, reason } = asked
    const earlier = known.get(reference)
    if (earlier) return repeatedDeposit(earlier, asked)
    if (!holdsDeposits(funds + amount)) return { kind: 'too_much' }
    changes.push(depositChange(account, { ...asked, funds }, origin))
    movements.push({ ...asked, at: origin.at })
    known.set(reference, { amount, at: origin.at, reason })
    funds += amount
    return { kind: 'deposited', at: origin.at, reason }
  })
  return { writes: [...depositWrites(account, movements, before), changeWrite(...changes)], result }
}
