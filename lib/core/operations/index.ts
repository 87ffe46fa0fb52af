export { personOf } from './body/person.ts'
export {
  type PriceCeiling,
  type ProviderConstraint,
  providerConstraintSchema,
  toProviderConstraint,
} from './body/provider-constraint.ts'
export { kindOfField, type Reference, referencesIn, referencesInQuery } from './body/references.ts'
export { FormFile, multipartBody, renamedForm } from './body/upstream-body.ts'
export { ENDPOINT_BY_KIND, endpointOf, OPERATIONS, servesNatively } from './by-path.ts'
export { chatCompletions } from './chat/chat-completions.ts'
export { completions } from './chat/completions.ts'
export { embeddings } from './embeddings.ts'
export { chatFinishReason, type FinishReason, incompleteReason, messageStopReason } from './finish-reasons.ts'
export { imageEdits } from './images/image-edits.ts'
export { imageGenerations } from './images/image-generations.ts'
export { MAX_TOKENS_PER_IMAGE } from './images/images-answer.ts'
export { messages } from './messages/messages.ts'
export { estimatorFor } from './metering/sampled-estimate.ts'
export { contextReason, estimateTokens, windowNeeded } from './metering/token-estimate.ts'
export type {
  AnswerReading,
  FrameReading,
  Operation,
  PriceUnit,
  ReportedUsage,
  RequestFacts,
  ResourceName,
  StreamingOperation,
  StreamReader,
  StreamReaderOptions,
  Substance,
  TokenEstimator,
  UpstreamEdit,
  Usage,
} from './operation.ts'
export { rerank } from './rerank.ts'
export { compactResponse, responses, storedResponses } from './responses/responses.ts'
export { countTokens, responseInputTokens } from './token-counts.ts'
export {
  type TaskParameter,
  type TaskParameters,
  taskParameters,
  textsOf,
  type VideoTaskBody,
  videoTasks,
  withoutFlags,
} from './video/video-tasks.ts'
export { type RemixSource, remixOf, type VideoBody, videos } from './video/videos.ts'
