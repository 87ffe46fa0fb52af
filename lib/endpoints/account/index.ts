export { type AccountRoutesOptions, accountRoutes, type FundsView, type OwnFunds } from './account.ts'
