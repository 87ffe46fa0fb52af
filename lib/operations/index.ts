export { ENDPOINT_BY_KIND, OPERATIONS } from './by-path.ts'
export { chatCompletions } from './chat-completions.ts'
export { messages } from './messages.ts'
export type {
  AnswerReading,
  FrameReading,
  Operation,
  PriceUnit,
  ReportedUsage,
  RequestFacts,
  StreamingOperation,
  StreamReader,
  StreamReaderOptions,
  Substance,
  TokenEstimator,
  UpstreamEdit,
  Usage,
} from './operation.ts'
export {
  type PriceCeiling,
  type ProviderConstraint,
  providerConstraintSchema,
  toProviderConstraint,
} from './provider-constraint.ts'
export { estimateTokens } from './token-estimate.ts'
