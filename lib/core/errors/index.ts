export type { ErrorReason, ReasonKind, ReasonNumbers } from './client-phrases.ts'
export {
  ERROR_CODE_NAMES,
  ERROR_CODES,
  type ErrorCode,
  type ErrorRow,
  errorRow,
  isErrorCode,
  type RetryTier,
} from './codes.ts'
export { isUnforeseen, noAnswerReason, toGatewayError } from './foreign-error.ts'
export { GatewayError, type GatewayErrorOptions } from './gateway-error.ts'
