/* The names that the subpath of the package exports. The other rooms import "./index.ts". */
export {
  ERROR_CODES,
  type ErrorCode,
  type ErrorReason,
  type ErrorRow,
  GatewayError,
  type GatewayErrorOptions,
  noAnswerReason,
  type ReasonKind,
  type ReasonNumbers,
  type RetryTier,
} from './index.ts'
