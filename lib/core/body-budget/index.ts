export { type BudgetBounds, budgetOf, HeldBody } from './held-body.ts'
