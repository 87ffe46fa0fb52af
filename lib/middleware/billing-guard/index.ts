export { type BillingGuardOptions, billingGuard } from './billing-guard.ts'
