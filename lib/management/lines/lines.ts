import type { Request } from 'express'
import { z } from 'zod'
import {
  type AnswerOf,
  answersWith,
  endpointFor,
  listOf,
  listPage,
  orNotFound,
  pageById,
  pageQuery,
} from '../../core/json-api/index.ts'
import { lineFigures, runtimeFigures } from '../../endpoints/models/line-schemas.ts'
import type { ResourceParts } from '../resource.ts'
import type { LineSwitchStore } from './line-switch-store.ts'

const linePatch = z
  .strictObject({
    enabled: z.boolean().nullable().optional().describe('null: as the config says.'),
    rests: z.array(z.string()).max(0).optional().describe('[]: ends the rests after 429s in all processes.'),
  })
  .refine(({ enabled, rests }) => (enabled === undefined) !== (rests === undefined), {
    path: ['enabled'],
    error: 'either this or "rests" must be sent, not both',
  })

export const line = lineFigures.extend({
  object: z.literal('line'),
  workers: z
    .array(runtimeFigures.partial().extend({ worker: z.int(), pid: z.int(), answered: z.boolean() }))
    .optional()
    .describe(
      'With several workers: the figures of each. A worker that did not answer in time is not part of the other members.',
    ),
  switched: z
    .boolean()
    .nullable()
    .describe('Whether operators switched it on or off; null: the config decides.'),
})
export type LineAnswer = AnswerOf<typeof line>

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

type ListedLine = Omit<LineAnswer, 'object' | 'switched'>

interface LineParts extends ResourceParts {
  readonly lines: AdminLines
}

const endpoint = endpointFor<LineParts>()

export const LINE_ENDPOINTS = [
  endpoint({
    id: 'listLines',
    method: 'get',
    path: '/lines',
    role: 'viewer',
    summary: 'Lines and their status',
    query: pageQuery,
    answers: answersWith('LineList', listOf(line)),
    async handle({ query: { limit, cursor } }, { lines }) {
      const switches = await lines.store.all()
      const found = pageById(await lines.list(), limit + 1, cursor)
      return listPage(found, limit, (each) => describe(each, switches))
    },
  }),
  endpoint({
    id: 'getLine',
    method: 'get',
    path: '/lines/{id}',
    role: 'viewer',
    summary: 'One line',
    answers: answersWith('Line', line),
    async handle({ req, id }, { lines }) {
      return describe(await find(req, id, lines), await lines.store.all())
    },
  }),
  endpoint({
    id: 'switchLine',
    method: 'patch',
    path: '/lines/{id}',
    role: 'admin',
    summary: 'Switches a line on or off, in every process',
    body: linePatch,
    answers: answersWith('Line', line),
    async handle({ req, id, body: { enabled } }, { lines, origin }) {
      const { rests } = await find(req, id, lines)
      if (enabled === undefined) await lines.store.lift(id, rests, origin(req))
      else await lines.store.set(id, enabled, origin(req))
      await lines.refresh()
      return describe(await find(req, id, lines), await lines.store.all())
    },
  }),
]

async function find(req: Request, id: string, lines: AdminLines): Promise<ListedLine> {
  return orNotFound(
    req,
    (await lines.list()).find((line) => line.id === id),
  )
}

function describe({ id, ...rest }: ListedLine, switches: ReadonlyMap<string, boolean>): LineAnswer {
  return { id, object: 'line', ...rest, switched: switches.get(id) ?? null }
}
