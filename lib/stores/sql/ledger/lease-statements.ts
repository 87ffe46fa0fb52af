import { RowStatement } from '../driver/row-statement.ts'
import type { LeasesTable } from './ledger-tables.ts'

/*
 * The rules of `ledger/lease.ts` for Postgres, one statement each: a database may be far away, and whoever locks a wallet
 * for several round trips has all other processes wait for so long. Wallets are locked before leases, both in the order of
 * their ids.
 */

/** What a change has done, and the wallet behind it. */
export interface ChangedRow {
  readonly lease: string
  readonly moved: bigint
  readonly lost: boolean
  readonly open: boolean
  readonly limited: number
  readonly funds: bigint
  readonly spent: bigint
  readonly leased: bigint
}

/**
 * Makes changes as `changeLease` does, of a wallet and of a lease one each. Leaves out unknown wallets. `want` of a `give` is
 * its amount.
 *
 * Fails with a division by zero if a lease was opened meanwhile, by an earlier sending of the same change.
 */
export const CHANGE_LEASES = RowStatement.steps<ChangedRow>(
  {
    lease: 'text',
    wallet: 'text',
    owner: 'text',
    seq: 'bigint',
    takes: 'bigint',
    need: 'bigint',
    want: 'bigint',
    at: 'bigint',
  },
  {
    locked_wallets: `select found.* from given join wallets as found on found.id = given.wallet
      order by found.id for update of found`,
    locked_leases: `select found.* from given join leases as found on found.id = given.lease
      where (select count(*) from locked_wallets) > 0 order by found.id for update of found`,
    asked: `select given.*, wallets.limited, wallets.funds, wallets.spent, wallets.leased,
        leases.held, leases.seq as last, leases.last_moved, leases.ended,
        case when wallets.limited = 0 or room <= 0 or room < given.need then 0
          else greatest(given.need, least(given.want, div(room, 10))) end::bigint as grantable,
        case when leases.id is null then case when given.takes = 1 and given.seq = 1 then 'open' else 'lost' end
          when leases.wallet <> given.wallet or leases.ended = 'swept' then 'lost'
          when given.seq <= leases.seq then 'repeated'
          when leases.ended is not null then 'lost'
          else 'move' end as verdict
      from given join locked_wallets as wallets on wallets.id = given.wallet
        left join locked_leases as leases on leases.id = given.lease
        cross join lateral (select wallets.funds::numeric - wallets.spent - wallets.leased as room) as room`,
    judged: `select *, case when takes = 1 then moved when verdict = 'move' then -moved else 0 end
          * (verdict in ('open', 'move'))::integer as step
      from asked cross join lateral (select case
        when verdict = 'open' or (verdict = 'move' and takes = 1) then grantable
        when verdict = 'move' then least(want, held)
        when verdict = 'repeated' and seq = last then last_moved
        else 0 end as moved) as moved`,
    opened: `insert into leases (id, wallet, owner, held, seq, last_moved, beats, renewed_at)
      select lease, wallet, owner, moved, seq, moved, 1, at from judged where verdict = 'open' and moved > 0
      on conflict (id) do nothing returning id`,
    changed: `update leases as found set held = found.held + step, seq = judged.seq, last_moved = moved,
        beats = found.beats + 1, renewed_at = at,
        ended = case when takes = 0 and judged.held = moved then 'closed' end,
        ended_at = case when takes = 0 and judged.held = moved then at end
      from judged where found.id = judged.lease and verdict = 'move'`,
    booked: `update wallets as found set leased = found.leased + step
      from judged where found.id = judged.wallet and step <> 0`,
  },
  `select lease, moved, limited, funds, spent, leased + step as leased, verdict = 'lost' as lost,
      case verdict when 'open' then moved > 0 when 'repeated' then ended is null
        when 'move' then takes = 1 or held > moved else false end as open,
      1 / ((select count(*) from opened) =
        (select count(*) from judged where verdict = 'open' and moved > 0))::integer as whole
    from judged`,
)

/** Sweeps leases whose beats are as given, as `sweepLease` does, and returns all that are swept by now. What somebody else has locked is left out. */
export const SWEEP_LEASES = sweeping('skip locked')

/**
 * Sweeps a lease that was left out. The rows of a busy account are nearly always locked, for a moment each time: this waits
 * for its turn, a tenth of a second at most.
 */
export const SWEEP_BUSY_LEASE = sweeping('')

function sweeping(skipping: 'skip locked' | '') {
  return RowStatement.steps<{ id: string }>(
    { id: 'text', beats: 'bigint', at: 'bigint' },
    {
      patience: `select set_config('lock_timeout', '100', true) from given`,
      free_wallets: `select found.id from wallets as found
        where found.id in (select leases.wallet from given join leases on leases.id = given.id)
          and (select count(*) from patience) > 0
        order by found.id for update of found ${skipping}`,
      free_leases: `select found.* from leases as found
        where found.id in (select id from given) and (select count(*) from free_wallets) > 0 order by found.id for update of found ${skipping}`,
      due: `select leases.id, leases.wallet, leases.held, leases.ended, given.at
        from (select distinct * from given) as given
          join free_leases as leases on leases.id = given.id and leases.beats = given.beats
          join free_wallets on free_wallets.id = leases.wallet`,
      swept: `update leases as found set held = 0, ended = 'swept', ended_at = due.at
        from due where found.id = due.id and due.ended is null`,
      booked: `update wallets as found set leased = found.leased - back.held
        from (select wallet, sum(held)::bigint as held from due where ended is null group by wallet) as back
        where found.id = back.wallet`,
    },
    `select id from due where ended is null or ended = 'swept'`,
  )
}

/** An open lease; without an id if there is none. */
interface WatchedRow extends Pick<LeasesTable, 'wallet' | 'owner' | 'held' | 'beats' | 'renewed_at'> {
  readonly id: string | null
}

/** Takes or keeps a place of those that watch leases, and returns these; nothing if all places are taken. */
export const WATCH_LEASES = RowStatement.steps<WatchedRow>(
  { watcher: 'text', gone_ms: 'bigint' },
  {
    clock: 'select (extract(epoch from clock_timestamp()) * 1000)::bigint as now',
    place: `select found.place from given cross join clock
        join lease_watchers as found on found.owner = given.watcher or abs(now - found.seen_at) > given.gone_ms
      order by found.owner = given.watcher desc nulls last, found.place limit 1
      for update of found skip locked`,
    taken: `update lease_watchers as found set owner = given.watcher, seen_at = now
      from place cross join given cross join clock where found.place = place.place returning found.place`,
  },
  `select leases.id, wallet, leases.owner, held, beats, renewed_at
    from taken left join leases on ended_at is null order by leases.id`,
)
