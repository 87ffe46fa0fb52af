import type { Request, Response, Router } from 'express'
import { z } from 'zod'
import { formatAmount } from '../../../core/catalog/index.ts'
import { isoTime, listPage, newRouter, ownQuery, readQuery } from '../../../core/json-api/index.ts'
import { pageById } from '../page-by-id.ts'
import { pageQuery } from '../page-query.ts'

/** Another region, as this process sees it. */
export interface RegionState {
  readonly name: string
  readonly away: boolean
  /** Since when, in milliseconds since the epoch. */
  readonly since: number
  /** The accounts of that region that are copied here. */
  readonly accounts: number
  /** What is left here of the shares of their balances, in nano-units. */
  readonly held: bigint
}

/** What another region has of an account. Amounts are nano-units. */
export interface AccountShare {
  readonly region: string
  readonly transferred: bigint
  readonly spent: bigint
  /** Milliseconds since the epoch. */
  readonly reportedAt: number
}

/** The other regions, as the admin API shows them: a `SqlRegions`. */
export interface RegionsView {
  /** Returns all other regions, with what this one has of their accounts. */
  list(): Promise<readonly RegionState[]>
  /** Returns the home of an account; undefined if it is this region. */
  homeOf(account: string): Promise<string | undefined>
  /** Returns what other regions have of an account. */
  sharesOf(account: string): Promise<readonly AccountShare[]>
}

/** A row of `GET /regions`. */
export const region = z.strictObject({
  object: z.literal('region'),
  id: z.string(),
  reachable: z.boolean(),
  since: z.iso.datetime().nullable(),
  accounts: z.int().describe('Accounts of that region that are served here.'),
  held: z.string().describe('What is left here of their balances.'),
})

/** What a region has of an account. */
export const share = z.strictObject({
  region: z.string(),
  transferred: z.string(),
  spent: z.string(),
  reported_at: z.iso.datetime().nullable(),
})

/** Returns the route of `/regions`: the other regions, and whether they answer. */
export function regionRoutes(regions: RegionsView | undefined): Router {
  return newRouter().get('/regions', ownQuery, async (req: Request, res: Response) => {
    const { limit, cursor } = readQuery(req, pageQuery)
    const all = ((await regions?.list()) ?? []).map(({ name, ...rest }) => ({ ...rest, id: name }))
    const found = pageById(all, limit + 1, cursor)
    res.json(
      listPage(found, limit, ({ id, away, since, accounts, held }) => ({
        ...{ id, object: 'region', reachable: !away, since: isoTime(since), accounts },
        held: formatAmount(held),
      })),
    )
  })
}

/** Returns the members of an account about regions. */
export async function describeRegions(regions: RegionsView, account: string): Promise<object> {
  const [home, shares] = await Promise.all([regions.homeOf(account), regions.sharesOf(account)])
  return {
    home: home ?? null,
    shares: shares.map(({ region, transferred, spent, reportedAt }) => ({
      region,
      transferred: formatAmount(transferred),
      spent: formatAmount(spent),
      reported_at: isoTime(reportedAt),
    })),
  }
}
