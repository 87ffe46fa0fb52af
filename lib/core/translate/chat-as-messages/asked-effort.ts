import type { JsonObject } from '../../json/index.ts'
import { askedReasoning } from '../../operations/chat/asked-reasoning.ts'
import { effortOf } from '../requests/reasoning-effort.ts'

/** Returns the effort that a chat asks for. A budget counts as the effort that matches it. */
export function askedEffort(json: JsonObject, maxTokens: number): unknown {
  const asked = askedReasoning(json)
  if (!asked || asked.effort !== undefined) return asked?.effort
  return typeof asked.budget === 'number' ? effortOf(asked.budget, maxTokens) : 'medium'
}
