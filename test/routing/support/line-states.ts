import type { Catalog } from '../../../lib/core/catalog/index.ts'
import type { LineRegistry } from '../../../lib/middleware/route/index.ts'
import type { Fault } from './fault-rows.ts'

/** The lines of a gateway, and what it knows of them. */
export interface LineStates {
  readonly catalog: Catalog
  readonly lines: LineRegistry
}

/** Returns `line model account` for each of which no call would be let through. */
export function shutFor(
  { catalog, lines }: LineStates,
  models: readonly string[],
  accounts: readonly string[],
): string[] {
  return catalog.lines.flatMap((line) => {
    const state = lines.stateOf(line)
    return models.flatMap((model) =>
      accounts.flatMap((account) => {
        const admits = state.circuit.admits(account) && state.modelState(model).circuit.admits(account)
        return admits ? [] : [`${line.id} ${model} ${account}`]
      }),
    )
  })
}

/** Returns what a fault of the first line with the first model closes, to these accounts. */
export function closedBy(fault: Fault, models: readonly string[], accounts: readonly string[]): string[] {
  const closed = { none: [], model: models.slice(0, 1), line: models }[fault]
  return closed.flatMap((model) => accounts.map((account) => `line-0 ${model} ${account}`))
}

/** Returns what rests, and for how long. */
export function restingOn({ catalog, lines }: LineStates): { on: string; rest_ms: number }[] {
  return catalog.lines.flatMap((line) =>
    lines.figures(line).rests.map(({ model, rest_ms }) => ({ on: `${line.id} ${model}`, rest_ms })),
  )
}
