export { ENDPOINT_BY_KIND, OPERATIONS } from './by-path.ts'
export { chatCompletions } from './chat-completions.ts'
export { completions } from './completions.ts'
export { countTokens } from './count-tokens.ts'
export { embeddings } from './embeddings.ts'
export { FormFile } from './form-file.ts'
export { imageGenerations } from './images.ts'
export { MOST_TOKENS_PER_IMAGE } from './images-answer.ts'
export { messages } from './messages.ts'
export { endpointOf, servesNatively } from './native-lines.ts'
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
export { rerank } from './rerank.ts'
export { responses, storedResponses } from './responses.ts'
export { type TaskParameter, type TaskParameters, taskParameters, withoutFlags } from './task-parameters.ts'
export { estimateTokens } from './token-estimate.ts'
export { textsOf, type VideoTaskBody, videoTasks } from './video-tasks.ts'
export { type RemixSource, remixOf, type VideoBody, videos } from './videos.ts'
