import { RowStatement } from '../driver/row-statement.ts'

/*
 * One statement each, for Postgres: home is far away, and nobody else's call waits for a lock longer than a statement takes.
 * Wallets are locked before shares, both in the order of their ids.
 */

/** A share behind its wallet, both locked. What somebody else has locked is left out: the others do not wait for it. */
const LOCKED = {
  locked_wallets: `select found.* from given join wallets as found on found.id = given.wallet
    order by found.id for update of found skip locked`,
  locked_shares: `select found.* from given join shares as found on found.wallet = given.wallet
    where (select count(*) from locked_wallets) > 0 order by found.wallet for update of found skip locked`,
}

export interface PreparedRow {
  readonly wallet: string
  readonly seq: bigint
  readonly received: bigint
  readonly returned: bigint
  readonly spent: bigint
  readonly balance: bigint
  readonly leased: bigint
}

/** Takes what is to be returned out of the funds, and numbers the next reports. */
export const PREPARE = RowStatement.steps<PreparedRow>(
  { wallet: 'text', give: 'bigint' },
  {
    ...LOCKED,
    judged: `select given.wallet, shares.received, shares.returned, shares.seq + 1 as seq,
        wallets.funds, wallets.spent, wallets.leased,
        greatest(least(given.give::numeric, wallets.funds::numeric - greatest(wallets.spent, 0) - wallets.leased,
          shares.received - shares.returned), 0)::bigint as gives
      from given join locked_wallets as wallets on wallets.id = given.wallet
        join locked_shares as shares on shares.wallet = given.wallet`,
    saved: `update shares as found set seq = judged.seq, returned = found.returned + gives
      from judged where found.wallet = judged.wallet`,
    booked: `update wallets as found set funds = found.funds - gives
      from judged where found.id = judged.wallet and gives > 0`,
  },
  'select wallet, seq, received, returned + gives as returned, spent, funds - gives - spent as balance, leased from judged',
)

/** Adds what was granted since, and notes what home knows. */
export const APPLY = RowStatement.steps<{ wallet: string }>(
  {
    wallet: 'text',
    seq: 'bigint',
    granted: 'bigint',
    returned: 'bigint',
    spent: 'bigint',
    elsewhere: 'bigint',
  },
  {
    ...LOCKED,
    judged: `select given.*, greatest(given.granted - shares.received, 0) as comes
      from given join locked_wallets as wallets on wallets.id = given.wallet
        join locked_shares as shares on shares.wallet = given.wallet`,
    saved: `update shares as found set received = found.received + comes, told_spent = judged.spent,
        told_returned = greatest(found.told_returned, judged.returned), elsewhere = judged.elsewhere
      from judged where found.wallet = judged.wallet`,
    booked: `update wallets as found set funds = found.funds + comes
      from judged where found.id = judged.wallet and comes > 0`,
  },
  'select wallet from judged',
)

export interface ExchangedRow {
  readonly wallet: string
  readonly granted: bigint
  readonly elsewhere: bigint
}

/**
 * Takes reports, and grants. What a region holds of a wallet is granted − returned − spent, and never below 0; what it has
 * spent beyond that is granted first.
 *
 * Fails with a division by zero if the first report of a share was taken meanwhile.
 */
function exchanging(skipping: string) {
  return RowStatement.steps<ExchangedRow>(
    {
      wallet: 'text',
      region: 'text',
      seq: 'bigint',
      received: 'bigint',
      returned: 'bigint',
      spent: 'bigint',
      need: 'bigint',
      want: 'bigint',
      at: 'bigint',
    },
    {
      locked_wallets: `select found.* from given join wallets as found on found.id = given.wallet
        order by found.id for update of found${skipping}`,
      locked_shares: `select found.* from given join lent_shares as found
          on found.wallet = given.wallet and found.region = given.region
        where (select count(*) from locked_wallets) > 0 order by found.wallet for update of found`,
      known: `select given.*, wallets.limited, wallets.funds, wallets.leased, wallets.spent as spent_in_all,
          shares.wallet is null as is_new, shares.wallet is null or given.seq > shares.seq as is_later,
          coalesce(shares.granted, 0) as granted, coalesce(shares.spent, 0) as spent_before,
          coalesce(shares.returned, 0) as returned_before
        from given join locked_wallets as wallets on wallets.id = given.wallet
          left join locked_shares as shares on shares.wallet = given.wallet`,
      told: `select known.*, case when is_later then spent else spent_before end as spent_now,
          case when is_later then returned else returned_before end as returned_now from known`,
      weighed: `select told.*, granted - returned_now - spent_now as left_over,
          greatest(granted - returned_before - spent_before, 0) as held_before,
          greatest(granted - returned_now - spent_now, 0) as held from told`,
      judged: `select weighed.*, case when not is_later or received <> granted or limited = 0 or room <= 0 or room < need then 0
            else greatest(need, least(want, div(room, 10))) end::bigint as adds
        from weighed cross join lateral (select funds::numeric - spent_in_all - spent_now + spent_before
          - leased + held_before - held as room) as room`,
      granting: `select judged.*, adds + case when adds > 0 then greatest(-left_over, 0) else 0 end as grants from judged`,
      opened: `insert into lent_shares (wallet, region, seq, granted, returned, spent, reported_at)
        select wallet, region, seq, grants, returned, spent, at from granting where is_new
        on conflict (wallet, region) do nothing returning wallet`,
      saved: `update lent_shares as found set seq = granting.seq, granted = found.granted + grants,
          returned = granting.returned, spent = granting.spent, reported_at = at
        from granting where found.wallet = granting.wallet and found.region = granting.region and is_later and not is_new`,
      booked: `update wallets as found set spent = found.spent + spent_now - spent_before,
          leased = found.leased - held_before + held + adds
        from granting where found.id = granting.wallet and is_later`,
    },
    `select wallet, granted + grants as granted,
        (funds::numeric - spent_in_all - spent_now + spent_before - left_over - grants)::bigint as elsewhere,
        1 / ((select count(*) from opened) = (select count(*) from granting where is_new))::integer as whole
      from granting`,
  )
}

export const EXCHANGE = exchanging('')
/** Leaves out wallets that somebody else has locked. */
export const EXCHANGE_FREE = exchanging(' skip locked')
