import type { RequestHandler } from 'express'
import { callOf } from 'express-model-gateway'
import { personOf } from './staff.ts'

/** What a team has used since the start. */
export interface TeamUsage {
  calls: number
  inputTokens: number
  outputTokens: number
}

/** Counts what each team uses. Nobody is charged, so nothing has to be held or written before an answer may end. */
export class TeamUsageCounter {
  readonly byTeam = new Map<string, TeamUsage>()

  /** In front of `route`: it looks when the call ends, however it ends. */
  count(): RequestHandler {
    const { byTeam } = this
    return function countUsage(req, _res, next) {
      const call = callOf(req)
      const team = personOf(req)?.team
      if (team !== undefined) {
        call.onEnd('team usage', () => {
          // Refused and failed calls have none.
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
