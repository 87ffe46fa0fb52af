import type { Logger } from '../../core/call/index.ts'
import { formatAmount } from '../../core/catalog/index.ts'
import type { Place } from './waiting-settlements.ts'

/** Tells the log of a settlement that the ledger has not taken, with all that is needed to write it by hand. */
export function tellUnsettled(logger: Logger, { what }: Place, error: unknown, message: string): void {
  const { entry, ...settlement } = what.settlement()
  const draws = settlement.draws.map((draw) => ({ ...draw, amount: formatAmount(draw.amount) }))
  const figures = { ...settlement, amount: formatAmount(settlement.amount), draws }
  logger.error({ err: error, settlement: figures }, message)
}
