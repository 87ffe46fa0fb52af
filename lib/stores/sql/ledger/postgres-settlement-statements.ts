import type { WalletId } from '../../../ledger/index.ts'
import { bigintArray, textArray } from '../driver/postgres/postgres-arrays.ts'
import type { BoundStatement, PreparedStatement } from '../driver/postgres/postgres-batch.ts'
import type { SettlementRow } from './settlement-cells.ts'

/*
 * Each statement makes sure that every row is as it should be, dividing by zero where one is not: then nothing of the
 * batch has happened.
 *
 * They come in the order in which all lock: wallets, claims, charges, leases, each by their ids.
 */

/** What a wallet is charged, and how much of it its leases held. */
export interface WalletMove {
  cost: bigint
  drawn: bigint
}

/** What a lease held for charges. */
export interface LeaseDraw {
  readonly wallet: WalletId
  drawn: bigint
}

/** The end of a statement that must have written as many rows as it was given. */
const ALL_DONE = 'select 1 / (count(*) = cardinality($1::text[]))::integer from done'

const WALLETS: PreparedStatement = {
  name: 'settle_wallets',
  text: `with done as (
    update wallets set spent = wallets.spent + locked.cost, leased = wallets.leased - locked.drawn
    from (
      select wallet.id, given.cost, given.drawn
      from unnest($1::text[], $2::bigint[], $3::bigint[]) as given(id, cost, drawn)
      join wallets as wallet on wallet.id = given.id order by wallet.id for update of wallet
    ) as locked
    where wallets.id = locked.id returning 1
  ) ${ALL_DONE}`,
}

const CLAIMS: PreparedStatement = {
  name: 'settle_claims',
  text: `with done as (
    update idempotency set state = 'completed', expires_at = locked.keep_until
    from (
      select record.id, given.keep_until
      from unnest($1::text[], $2::text[], $3::bigint[]) as given(id, owner, keep_until)
      join idempotency as record on record.id = given.id and record.owner = given.owner
      order by record.id for update of record
    ) as locked
    where idempotency.id = locked.id returning 1
  ) ${ALL_DONE}`,
}

const CHARGES: PreparedStatement = {
  name: 'settle_charges',
  text: `with done as (
    insert into charges (request_id, account, key, amount, at, basis)
    select * from unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::text[])
      as given(request_id, account, key, amount, at, basis)
    where not exists (select 1 from voids where voids.request_id = given.request_id)
    order by request_id collate "C"
    on conflict (request_id) do nothing returning 1
  ) ${ALL_DONE}`,
}

const LEASES: PreparedStatement = {
  name: 'settle_leases',
  text: `with done as (
    update leases set held = leases.held - locked.drawn
    from (
      select lease.id, given.drawn
      from unnest($1::text[], $2::text[], $3::bigint[]) as given(id, wallet, drawn)
      join leases as lease on lease.id = given.id and lease.wallet = given.wallet
      order by lease.id for update of lease
    ) as locked
    where leases.id = locked.id and leases.held >= locked.drawn returning 1
  ) ${ALL_DONE}`,
}

const CALLS: PreparedStatement = {
  name: 'settle_calls',
  text: `insert into calls (id, account, key, model, status, error_code, created_at, entry, response_body)
    select * from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::text[], $7::bigint[],
      $8::text[], $9::text[])
      as given(id, account, key, model, status, error_code, created_at, entry, response_body)
    order by id collate "C"
    on conflict (id) do update set account = excluded.account, key = excluded.key, model = excluded.model,
      status = excluded.status, error_code = excluded.error_code, created_at = excluded.created_at,
      entry = excluded.entry, response_body = excluded.response_body`,
}

export function walletsOf(moves: ReadonlyMap<WalletId, WalletMove>): BoundStatement {
  const figures = [...moves.values()]
  const costs = figures.map(({ cost }) => cost)
  const drawn = figures.map((move) => move.drawn)
  return {
    statement: WALLETS,
    values: [textArray([...moves.keys()]), bigintArray(costs), bigintArray(drawn)],
  }
}

/** None where there is no claim. */
export function claimsOf(settlements: readonly SettlementRow[]): BoundStatement[] {
  const claims = settlements.flatMap(({ claim }) => claim ?? [])
  if (claims.length === 0) return []
  const ids = textArray(claims.map(({ id }) => id))
  const owners = textArray(claims.map(({ owner }) => owner))
  return [{ statement: CLAIMS, values: [ids, owners, bigintArray(claims.map(({ keepUntil }) => keepUntil))] }]
}

export function chargesOf(settlements: readonly SettlementRow[]): BoundStatement {
  return {
    statement: CHARGES,
    values: [
      textArray(settlements.map(({ requestId }) => requestId)),
      textArray(settlements.map(({ account }) => account)),
      textArray(settlements.map(({ key }) => key)),
      bigintArray(settlements.map(({ amount }) => amount)),
      bigintArray(settlements.map(({ at }) => at)),
      textArray(settlements.map(({ basis }) => basis)),
    ],
  }
}

/** None where nothing was held. */
export function leasesOf(draws: ReadonlyMap<string, LeaseDraw>): BoundStatement[] {
  if (draws.size === 0) return []
  const figures = [...draws.values()]
  const wallets = textArray(figures.map(({ wallet }) => wallet))
  const drawn = bigintArray(figures.map((draw) => draw.drawn))
  return [{ statement: LEASES, values: [textArray([...draws.keys()]), wallets, drawn] }]
}

/** None where there is no entry. */
export function callsOf(settlements: readonly SettlementRow[]): BoundStatement[] {
  const calls = settlements.flatMap(({ entry }) => entry ?? [])
  if (calls.length === 0) return []
  return [
    {
      statement: CALLS,
      values: [
        textArray(calls.map(({ id }) => id)),
        textArray(calls.map(({ account }) => account)),
        textArray(calls.map(({ key }) => key)),
        textArray(calls.map(({ model }) => model)),
        bigintArray(calls.map(({ status }) => status)),
        textArray(calls.map(({ error_code }) => error_code)),
        bigintArray(calls.map(({ created_at }) => created_at)),
        textArray(calls.map(({ entry }) => entry)),
        textArray(calls.map(({ response_body }) => response_body)),
      ],
    },
  ]
}
