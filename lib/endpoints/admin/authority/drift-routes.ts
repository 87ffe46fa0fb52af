import type { Request, Response, Router } from 'express'
import { callOf } from '../../../core/call/index.ts'
import { listPage, newRouter, ownQuery, readQuery } from '../../../core/json-api/index.ts'
import { pageById } from '../page-by-id.ts'
import { pageQuery } from '../page-query.ts'
import { sharedRun } from '../shared-run.ts'
import { type ConfigAuthority, type Difference, placeOf } from './config-authority.ts'

/** What the routes need of a {@link ConfigAuthority}. */
export type Authority = Pick<ConfigAuthority, 'rules' | 'drift'>

/** Returns the route of `/drift`: the differences between config and database. */
export function driftRoutes(authority: Authority): Router {
  const drift = sharedRun(() => authority.drift())
  return newRouter().get('/drift', ownQuery, async (req: Request, res: Response) => {
    const { limit, cursor } = readQuery(req, pageQuery)
    const differences = (await drift()).map((difference) => {
      return { ...difference, id: placeOf(difference), subject: difference.id }
    })
    res.json(listPage(pageById(differences, limit + 1, cursor), limit, describe))
  })
}

function describe({ kind, subject, difference, members }: Difference & { readonly subject: string }) {
  return { object: 'difference', kind, id: subject, difference, members }
}

/** Refuses to change what the config rules. */
export async function refuseRuled(
  req: Request,
  authority: Authority | undefined,
  kind: 'account' | 'key',
): Promise<void> {
  if (!(await authority?.rules(kind, String(req.params.id)))) return
  throw callOf(req).refuse('conflict', {
    message: `The config rules this ${kind} ("authority": "config"). Change it there, and reload the config.`,
  })
}
