import type { Request } from 'express'
import type { Call } from '../../core/call/index.ts'
import { type DemandPlan, demandOf, type PlannedLevel } from './demand.ts'
import type { LimitValue, OfRequest } from './limit-levels.ts'
import type { Demand } from './limit-store.ts'

/** Returns the demand of a request, after all functions of the plan, each of which may return a promise. */
export async function demandLater(plan: DemandPlan, req: Request, call: Call): Promise<Demand | undefined> {
  const levels: PlannedLevel[] = []
  let countsTokens = false
  for (const { level, subjects } of plan.levels) {
    const name = await level.by(req, call)
    if (name === null || name === undefined) continue
    const rpm = await limitFor(level.rpm, req, call)
    const tpm = await limitFor(level.tpm, req, call)
    const concurrency = await limitFor(level.concurrency, req, call)
    countsTokens ||= tpm !== null && tpm !== undefined
    levels.push({ subjects, level: { name: level.name, by: () => name, rpm, tpm, concurrency } })
  }
  const counted = countsTokens && plan.tokens ? await plan.tokens(req, call) : 0
  return demandOf({ ...plan, levels, tokens: plan.tokens && (() => counted) }, req, call)
}

function limitFor(limit: OfRequest<LimitValue>, req: Request, call: Call): LimitValue | Promise<LimitValue> {
  return typeof limit === 'function' ? limit(req, call) : limit
}
