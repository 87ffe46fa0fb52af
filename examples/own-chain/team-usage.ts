import type { RequestHandler } from 'express'
import { callOf } from 'express-model-gateway'
import { personOf } from './staff.ts'

/** The usage of a team since the start. */
export interface TeamUsage {
  calls: number
  inputTokens: number
  outputTokens: number
}

/** Counts the usage of each team. Nothing is charged, so that nothing needs to be held or written before an answer ends. */
export class TeamUsageCounter {
  readonly byTeam = new Map<string, TeamUsage>()

  /** Returns a middleware that counts the usage at the end of each call. Mount it before `route`. */
  count(): RequestHandler {
    const { byTeam } = this
    return function countUsage(req, _res, next) {
      const call = callOf(req)
      const team = personOf(req)?.team
      if (team !== undefined) {
        call.onEnd('team usage', () => {
          // Refused and failed calls have no usage.
          if (!call.usage) return
          const { inputTokens, outputTokens } = call.usage
          const used = byTeam.get(team) ?? { calls: 0, inputTokens: 0, outputTokens: 0 }
          used.calls++
          used.inputTokens += inputTokens
          used.outputTokens += outputTokens
          byTeam.set(team, used)
        })
      }
      next()
    }
  }
}
