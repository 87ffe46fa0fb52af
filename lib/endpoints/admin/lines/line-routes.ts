import type { Request, Response, Router } from 'express'
import { z } from 'zod'
import { changeOrigin } from '../../../core/change-log/index.ts'
import {
  jsonBody,
  listPage,
  newRouter,
  orNotFound,
  ownQuery,
  readBody,
  readQuery,
} from '../../../core/json-api/index.ts'
import { pageById } from '../page-by-id.ts'
import { pageQuery } from '../page-query.ts'
import type { LineSwitchStore } from './line-switch-store.ts'

/** The lines and their switches, as the admin API needs them. */
export interface AdminLines {
  /**
   * Returns the public status of each line of the catalogue, without addresses and secrets, for this process or for several
   * processes together.
   */
  list(): readonly ListedLine[] | Promise<readonly ListedLine[]>
  /** The store of the switches. */
  readonly store: LineSwitchStore
  /** Applies the switches of the store in this process, and what it says of rests; `LineSwitches.refresh`. */
  refresh(): Promise<void>
}

interface ListedLine {
  readonly id: string
  readonly enabled: boolean
  /** What of it rests. */
  readonly rests: readonly object[]
}

export interface LineRoutesOptions {
  readonly lines: AdminLines
  readonly actor: (req: Request) => string
}

/** The body of `PATCH /lines/{id}`. */
export const lineChangeSchema = z
  .strictObject({
    enabled: z.boolean().nullable().optional().describe('null: as the config says.'),
    rests: z.array(z.string()).max(0).optional().describe('[]: ends the rests after 429s in all processes.'),
  })
  .refine(({ enabled, rests }) => (enabled === undefined) !== (rests === undefined), {
    path: ['enabled'],
    error: 'either this or "rests" must be sent, not both',
  })

/** Returns the routes of `/lines`: the status of lines, and switching them and lifting their rests in all processes. */
export function lineRoutes({ lines, actor }: LineRoutesOptions): Router {
  const router = newRouter()
  router.get('/lines', ownQuery, listLines)
  router.get('/lines/:id', showLine)
  router.patch('/lines/:id', jsonBody, changeLine)
  return router

  async function listLines(req: Request, res: Response): Promise<void> {
    const { limit, cursor } = readQuery(req, pageQuery)
    const switches = await lines.store.all()
    const found = pageById(await lines.list(), limit + 1, cursor)
    res.json(listPage(found, limit, (line) => describeLine(line, switches)))
  }

  async function showLine(req: Request, res: Response): Promise<void> {
    const line = await lineIn(req)
    res.json(describeLine(line, await lines.store.all()))
  }

  async function changeLine(req: Request, res: Response): Promise<void> {
    const { id, rests } = await lineIn(req)
    const { enabled } = readBody(req, lineChangeSchema)
    const origin = changeOrigin(req, actor)
    if (enabled === undefined) await lines.store.lift(id, rests, origin)
    else await lines.store.set(id, enabled, origin)
    await lines.refresh()
    res.json(describeLine(await lineIn(req), await lines.store.all()))
  }

  async function lineIn(req: Request): Promise<ListedLine> {
    const line = (await lines.list()).find(({ id }) => id === req.params.id)
    return orNotFound(req, line)
  }
}

function describeLine(line: { readonly id: string }, switches: ReadonlyMap<string, boolean>): object {
  const { id, ...rest } = line
  return { id, object: 'line', ...rest, switched: switches.get(id) ?? null }
}
