import { MAX_AMOUNT } from '../../../core/catalog/money.ts'
import { typesOf } from '../driver/columns.ts'
import { RowStatement } from '../driver/row-statement.ts'
import { CALL_COLUMNS, CHARGE_COLUMNS } from './settlement-columns.ts'

/*
 * The statements of a settlement, in the order in which all who write several of these rows lock them: wallets, claims,
 * charges and voids, leases, calls, usage.
 */

export const OPEN_WALLETS = RowStatement.insert('wallets', { id: 'text' }, 'on conflict (id) do nothing', {
  constants: { limited: 0, funds: 0, spent: 0, leased: 0, overrun: 0 },
  loose: true,
})

/** Leaves out a wallet whose figure would exceed 64 bits: SQLite would convert it to a float. */
export const SPEND = RowStatement.update(
  'wallets',
  { id: 'text', cost: 'bigint', drawn: 'bigint', overrun: 'bigint' },
  `spent = found.spent + given.cost, leased = found.leased - given.drawn, overrun = found.overrun + given.overrun`,
  `found.id = given.id and given.cost <= ${MAX_AMOUNT} - found.spent
    and given.overrun <= ${MAX_AMOUNT} - found.overrun`,
)

export const COMPLETE_CLAIMS = RowStatement.update(
  'idempotency',
  { id: 'text', owner: 'text', keep_until: 'bigint' },
  `state = 'completed', expires_at = given.keep_until`,
  'found.id = given.id and found.owner = given.owner',
)

export const FREE_CLAIMS = RowStatement.delete(
  'idempotency',
  { id: 'text', owner: 'text' },
  'found.id = given.id and found.owner = given.owner',
)

export const WRITE_CHARGES = RowStatement.insert(
  'charges',
  typesOf(CHARGE_COLUMNS),
  'on conflict (request_id) do nothing',
  { unless: 'select 1 from voids where voids.request_id = given.request_id' },
)

const VOID_COLUMNS = {
  request_id: 'text',
  account: 'text',
  key: 'text',
  amount: 'bigint',
  at: 'bigint',
  counted: 'bigint',
} as const

export const WRITE_VOIDS = RowStatement.insert('voids', VOID_COLUMNS, 'on conflict (request_id) do nothing')

/** For voids that come before their charges. */
export const WRITE_EARLY_VOIDS = RowStatement.insert(
  'voids',
  VOID_COLUMNS,
  'on conflict (request_id) do nothing',
  { unless: 'select 1 from charges where charges.request_id = given.request_id' },
)

export const DRAW = RowStatement.update(
  'leases',
  { id: 'text', wallet: 'text', drawn: 'bigint' },
  'held = found.held - given.drawn',
  'found.id = given.id and found.wallet = given.wallet and found.held >= given.drawn',
)

/** A call that is not counted yet stays so. */
const CALL_NAMES = Object.keys(CALL_COLUMNS).filter((name) => name !== 'counted')

const REPLACE = `on conflict (id) do update set ${CALL_NAMES.map((name) => `${name} = excluded.${name}`)}`

/** An entry replaces an earlier one. */
export const WRITE_CALLS = RowStatement.insert('calls', typesOf(CALL_COLUMNS), REPLACE)

/** For the calls of charges that were stored before. The entry of a void that came since is not replaced. */
export const WRITE_KNOWN_CALLS = RowStatement.insert('calls', typesOf(CALL_COLUMNS), REPLACE, {
  unless: 'select 1 from voids where voids.request_id = given.id',
})
