import type { Request } from 'express'
import { z } from 'zod'
import { callOf } from '../../core/call/index.ts'
import {
  type AnswerOf,
  answersWith,
  endpointFor,
  listOf,
  listPage,
  pageQuery,
} from '../../core/json-api/index.ts'
import { type ConfigAuthority, type Difference, placeOf } from './config-authority.ts'

/** The part of a {@link ConfigAuthority} that the admin API needs. */
export type Authority = Pick<ConfigAuthority, 'rules' | 'drift'>

const difference = z.strictObject({
  object: z.literal('difference'),
  kind: z.enum(['account', 'key']),
  id: z.string(),
  difference: z
    .enum(['changed', 'missing', 'not_in_config'])
    .describe('missing: the config names it, the database does not have it.'),
  members: z.array(z.string()).describe('The members of the config that differ; never their values.'),
})
export type DifferenceAnswer = AnswerOf<typeof difference>

interface DriftParts {
  readonly authority: Authority
}

const endpoint = endpointFor<DriftParts>()

export const DRIFT_ENDPOINTS = [
  endpoint({
    id: 'listDrift',
    method: 'get',
    path: '/drift',
    role: 'viewer',
    summary: 'The differences between the config and the database',
    query: pageQuery,
    answers: answersWith('DifferenceList', listOf(difference)),
    async handle({ query: { limit, cursor } }, { authority }) {
      const { differences, reached } = await authority.drift(limit + 1, cursor)
      const found = differences.map((each) => ({ ...each, id: placeOf(each), subject: each.id }))
      return listPage(found, limit, describe, reached)
    },
  }),
]

function describe({
  kind,
  subject,
  difference,
  members,
}: Difference & { readonly subject: string }): DifferenceAnswer {
  return { object: 'difference', kind, id: subject, difference, members }
}

/** Refuses to change what the config rules. */
export async function refuseRuled(
  req: Request,
  authority: Authority | undefined,
  kind: 'account' | 'key',
  id: string,
): Promise<void> {
  if (!(await authority?.rules(kind, id))) return
  throw callOf(req).refuse('conflict', {
    message: `The config rules this ${kind} ("authority": "config"). Change it there, and reload the config.`,
  })
}
