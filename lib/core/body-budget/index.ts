export { type BudgetBounds, budgetOf, HeldBody, heldBodyBytes } from './held-body.ts'
export { PieceCount } from './piece-count.ts'
export { takingBody } from './running-bodies.ts'
