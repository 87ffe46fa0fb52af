export { type BudgetBounds, budgetOf, HeldBody } from './held-body.ts'
export { PieceCount } from './piece-count.ts'
