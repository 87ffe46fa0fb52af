import { type Request, type Response, Router } from 'express'
import { z } from 'zod'
import { callOf } from '../../../core/call/index.ts'
import { changeOrigin } from '../../../core/change-log/index.ts'
import { jsonBody, readBody } from '../../../core/json-body/index.ts'
import { listPage, readQuery } from '../../../core/list-page/index.ts'
import { pageQuery } from '../page-query.ts'
import type { LineSwitchStore } from './line-switch-store.ts'

/** What the admin API tells of lines and does to them. */
export interface AdminLines {
  /**
   * What is told of each line of the catalogue, `id` and `enabled` among it; no addresses and no secrets. Of this process,
   * or gathered from several.
   */
  list(): readonly ToldLine[] | Promise<readonly ToldLine[]>
  /** Where switches are kept. */
  readonly store: LineSwitchStore
  /** Puts what the store has into force in this process; `LineSwitches.refresh`. */
  refresh(): Promise<void>
}

interface ToldLine {
  readonly id: string
  readonly enabled: boolean
}

/** What {@link lineRoutes} works on. */
export interface LineRoutesParts {
  readonly lines: AdminLines
  /** Who makes a change. */
  readonly actor: (req: Request) => string
}

/** The body of `PATCH /lines/{id}`. */
export const lineChangeSchema = z.strictObject({
  enabled: z.boolean().nullable().describe('null: as the config says.'),
})

/** `/lines…`: how the lines do, and switching them in all processes. */
export function lineRoutes({ lines, actor }: LineRoutesParts): Router {
  const router = Router()
  router.get('/lines', listLines)
  router.get('/lines/:id', showLine)
  router.patch('/lines/:id', jsonBody, switchLine)
  return router

  async function listLines(req: Request, res: Response): Promise<void> {
    const { limit, cursor = '' } = readQuery(req, pageQuery)
    const switches = await lines.store.all()
    const behind = (await lines.list()).filter(({ id }) => id > cursor)
    const sorted = behind.sort((one, other) => (one.id < other.id ? -1 : 1))
    res.json(listPage(sorted, limit, (line) => describeLine(line, switches)))
  }

  async function showLine(req: Request, res: Response): Promise<void> {
    const line = await lineIn(req)
    res.json(describeLine(line, await lines.store.all()))
  }

  async function switchLine(req: Request, res: Response): Promise<void> {
    const { id } = await lineIn(req)
    const { enabled } = readBody(req, lineChangeSchema)
    await lines.store.set(id, enabled, changeOrigin(req, actor))
    await lines.refresh()
    res.json(describeLine(await lineIn(req), await lines.store.all()))
  }

  async function lineIn(req: Request): Promise<ToldLine> {
    const line = (await lines.list()).find(({ id }) => id === req.params.id)
    if (!line) throw callOf(req).refuse('not_found')
    return line
  }
}

function describeLine(line: { readonly id: string }, switches: ReadonlyMap<string, boolean>): object {
  const { id, ...rest } = line
  return { id, object: 'line', ...rest, switched: switches.get(id) ?? null }
}
