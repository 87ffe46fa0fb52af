export { FormFile } from './body/form-file.ts'
export { multipartBody, renamedForm } from './body/multipart-body.ts'
export { personOf } from './body/person.ts'
export {
  type PriceCeiling,
  type ProviderConstraint,
  providerConstraintSchema,
  toProviderConstraint,
} from './body/provider-constraint.ts'
export { kindOfField, type Reference, referencesIn, referencesInQuery } from './body/references.ts'
export { surelyAccepts, variantIn } from './body/surely-accepts.ts'
export { editMembers } from './body/upstream-body.ts'
export { ENDPOINT_BY_KIND, OPERATIONS } from './by-path.ts'
export { chatCompletions } from './chat/chat-completions.ts'
export { completions } from './chat/completions.ts'
export { embeddings } from './embeddings.ts'
export { imageEdits } from './image-edits.ts'
export { imageGenerations } from './images.ts'
export { MAX_TOKENS_PER_IMAGE } from './images-answer.ts'
export { countTokens } from './messages/count-tokens.ts'
export { messages } from './messages/messages.ts'
export { endpointOf, servesNatively } from './native-lines.ts'
export { isModerated } from './no-output.ts'
export type {
  AnswerReading,
  FrameReading,
  KeptName,
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
export { rerank } from './rerank.ts'
export { compactResponse, responseInputTokens } from './responses/response-inputs.ts'
export { responses, storedResponses } from './responses/responses.ts'
export { estimateTokens, windowNeeded } from './tokens/token-estimate.ts'
export {
  type TaskParameter,
  type TaskParameters,
  taskParameters,
  withoutFlags,
} from './video/task-parameters.ts'
export { textsOf, type VideoTaskBody, videoTasks } from './video/video-tasks.ts'
export { type RemixSource, remixOf, type VideoBody, videos } from './video/videos.ts'
