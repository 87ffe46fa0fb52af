export {
  type AccountRoutesOptions,
  accountRoutes,
  type FundsView,
  type OwnAccountAnswer,
  type OwnFunds,
} from './account.ts'
